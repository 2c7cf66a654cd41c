//! Metrics with bounded labels, named by the conventions of Prometheus and controller-runtime.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::atomic::AtomicU64,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;

use prometheus_client::{
    encoding::text,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Metric, Registry, Unit},
};

/// The names and values of labels.
type Labels<const N: usize> = [(&'static str, Cow<'static, str>); N];

/// The metrics of the process.
pub(crate) struct Metrics {
    /// A controller can add metrics of its own.
    pub registry: Mutex<Registry>,
    passes: Family<Labels<1>, Counter>,
    pass_seconds: Histogram,
    errors: Family<Labels<2>, Counter>,
    backing_off: Gauge,
    last_success: Gauge<f64, AtomicU64>,
    watch_errors: Family<Labels<1>, Counter>,
    unreadable: Family<Labels<1>, Gauge>,
    kinds_observed: Family<Labels<1>, Gauge>,
    writes: Family<Labels<2>, Counter>,
    repeated_writes: Family<Labels<1>, Counter>,
    pub leader: Gauge,
    settings_errors: Counter,
    settings: Family<Labels<1>, Gauge>,
    settings_kept_out: Gauge,
    events: Family<Labels<1>, Counter>,
    unserved: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("catena");
        let all = &mut registry;
        Self {
            passes: added(all, "reconcile", "Reconciliations of an object, by result"),
            pass_seconds: in_seconds(
                all,
                "reconcile_time",
                "Duration of a reconciliation",
                Histogram::new(exponential_buckets(0.000_1, 4.0, 10)),
            ),
            errors: added(all, "reconcile_errors", "Failed reconciliations, by category and reason"),
            backing_off: added(all, "objects_in_backoff", "Objects whose last reconciliation failed"),
            last_success: in_seconds(
                all,
                "last_successful_reconcile_timestamp",
                "Time of the last successful reconciliation, in seconds since 1970",
                Gauge::default(),
            ),
            watch_errors: added(all, "watch_errors", "Failures of watches, by kind"),
            unreadable: added(
                all,
                "unreadable_objects",
                "Objects that cannot be read and are skipped, by kind",
            ),
            kinds_observed: added(
                all,
                "kind_observed",
                "1 while a watched kind is observed; 0 while it is not served, or its watch keeps failing",
            ),
            writes: added(all, "writes", "Writes to the API server, by verb and answer"),
            repeated_writes: added(
                all,
                "repeated_writes",
                "Reconciliations that repeated the same write too often, by the kind written",
            ),
            leader: added(all, "leader", "1 while this process holds the Lease"),
            settings_errors: added(all, "settings_errors", "Changes of the settings that were rejected"),
            settings: added(all, "settings_info", "1 for the settings in force, by the sha256 of their text"),
            settings_kept_out: added(
                all,
                "settings_kept_out",
                "1 while newer settings are not in force: refused, or waiting for rights",
            ),
            events: added(all, "events", "Events about objects, by whether they were published"),
            unserved: added(
                all,
                "kinds_not_served",
                "Configured kinds that the cluster does not serve in the configured version",
            ),
            registry: Mutex::new(registry),
        }
    }
}

/// The label of a kind.
fn of(kind: &str) -> Labels<1> {
    [("kind", kind.to_owned().into())]
}

/// A new metric, which the registry serves.
fn added<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// A metric in seconds, which the registry serves.
fn in_seconds<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

impl Metrics {
    pub fn passed(&self, result: &'static str, took: Duration) {
        self.passes.get_or_create(&[("result", result.into())]).inc();
        self.pass_seconds.observe(took.as_secs_f64());
        if result == "success" {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.last_success.set(now.as_secs_f64());
        }
    }

    pub fn failed(&self, category: &'static str, reason: &'static str) {
        self.errors.get_or_create(&[("category", category.into()), ("reason", reason.into())]).inc();
    }

    pub fn backing_off(&self, objects: usize) {
        self.backing_off.set(i64::try_from(objects).unwrap_or(i64::MAX));
    }

    pub fn watch_failed(&self, kind: &str) {
        self.watch_errors.get_or_create(&of(kind)).inc();
    }

    pub fn unreadable(&self, kind: &str, objects: usize) {
        let objects = i64::try_from(objects).unwrap_or(i64::MAX);
        self.unreadable.get_or_create(&of(kind)).set(objects);
    }

    /// Sets whether each kind is observed; kinds that are no longer watched disappear.
    pub fn observed(&self, kinds: &BTreeMap<String, bool>) {
        self.kinds_observed.clear();
        for (kind, observed) in kinds {
            self.kinds_observed.get_or_create(&of(kind)).set(i64::from(*observed));
        }
    }

    pub fn wrote(&self, verb: &'static str, code: u16) {
        self.writes.get_or_create(&[("verb", verb.into()), ("code", code.to_string().into())]).inc();
    }

    pub fn repeated(&self, kind: &str) {
        self.repeated_writes.get_or_create(&of(kind)).inc();
    }

    pub fn settings_refused(&self) {
        self.settings_errors.inc();
    }

    pub fn settings_in_force(&self, version: &str) {
        self.settings.clear();
        self.settings.get_or_create(&[("version", version.to_owned().into())]).set(1);
        self.settings_kept_out.set(0);
    }

    pub fn settings_kept_out(&self) {
        self.settings_kept_out.set(1);
    }

    pub fn unserved(&self, kinds: usize) {
        self.unserved.set(i64::try_from(kinds).unwrap_or(i64::MAX));
    }

    pub fn event(&self, result: &'static str) {
        self.events.get_or_create(&[("result", result.into())]).inc();
    }

    /// All metrics in the format of Prometheus (`OpenMetrics`).
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry.lock())?;
        Ok(page)
    }
}
