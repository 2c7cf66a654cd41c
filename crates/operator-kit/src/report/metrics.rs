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
    pub errors: Family<Labels<2>, Counter>,
    pub backing_off: Gauge<u64, AtomicU64>,
    last_success: Gauge<f64, AtomicU64>,
    pub watch_errors: Family<Labels<1>, Counter>,
    pub unreadable: Family<Labels<1>, Gauge<u64, AtomicU64>>,
    kinds_observed: Family<Labels<1>, Gauge>,
    pub writes: Family<Labels<2>, Counter>,
    pub repeated_writes: Family<Labels<1>, Counter>,
    pub leader: Gauge,
    pub settings_errors: Counter,
    settings: Family<Labels<1>, Gauge>,
    pub settings_kept_out: Gauge,
    events: Family<Labels<1>, Counter>,
    pub unserved: Gauge<u64, AtomicU64>,
}

impl Metrics {
    /// Metrics whose names begin with a prefix.
    pub fn new(prefix: &str) -> Self {
        let mut registry = Registry::with_prefix(prefix);
        let all = &mut registry;
        Self {
            passes: add(all, "reconcile", "Reconciliations of an object, by result"),
            pass_seconds: in_seconds(
                all,
                "reconcile_time",
                "Duration of a reconciliation",
                Histogram::new(exponential_buckets(0.000_1, 4.0, 10)),
            ),
            errors: add(all, "reconcile_errors", "Failed reconciliations, by category and reason"),
            backing_off: add(all, "objects_in_backoff", "Objects whose last reconciliation failed"),
            last_success: in_seconds(
                all,
                "last_successful_reconcile_timestamp",
                "Time of the last successful reconciliation, in seconds since 1970",
                Gauge::default(),
            ),
            watch_errors: add(all, "watch_errors", "Failures of watches, by kind"),
            unreadable: add(
                all,
                "unreadable_objects",
                "Objects that cannot be read and are skipped, by kind",
            ),
            kinds_observed: add(
                all,
                "kind_observed",
                "1 while a watched kind is observed; 0 while it is not served, or its watch keeps failing",
            ),
            writes: add(all, "writes", "Writes to the API server, by verb and answer"),
            repeated_writes: add(
                all,
                "repeated_writes",
                "Reconciliations that repeated the same write too often, by the kind written",
            ),
            leader: add(all, "leader", "1 while this process holds the Lease"),
            settings_errors: add(all, "settings_errors", "Changes of the settings that were rejected"),
            settings: add(all, "settings_info", "1 for the settings in force, by the sha256 of their text"),
            settings_kept_out: add(
                all,
                "settings_kept_out",
                "1 while newer settings are not in force: refused, or waiting for rights",
            ),
            events: add(all, "events", "Events about objects, by whether they were published"),
            unserved: add(
                all,
                "kinds_not_served",
                "Configured kinds that the cluster does not serve in the configured version",
            ),
            registry: Mutex::new(registry),
        }
    }
}

/// A new metric, which the registry serves.
fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
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
    /// The label of a kind.
    pub fn of(kind: &str) -> Labels<1> {
        [("kind", kind.to_owned().into())]
    }

    pub fn passed(&self, result: &'static str, took: Duration) {
        self.passes.get_or_create(&[("result", result.into())]).inc();
        self.pass_seconds.observe(took.as_secs_f64());
        if result == "success" {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.last_success.set(now.as_secs_f64());
        }
    }

    /// Sets whether each kind is observed; kinds that are no longer watched disappear.
    pub fn observed(&self, kinds: &BTreeMap<String, bool>) {
        self.kinds_observed.clear();
        for (kind, observed) in kinds {
            self.kinds_observed.get_or_create(&Self::of(kind)).set(i64::from(*observed));
        }
    }

    pub fn settings_in_force(&self, version: &str) {
        self.settings.clear();
        self.settings.get_or_create(&[("version", version.to_owned().into())]).set(1);
        self.settings_kept_out.set(0);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Users have dashboards and alerts for these names and labels.
    #[test]
    fn the_page_keeps_its_names_labels_and_help_texts() {
        let metrics = Metrics::new("catena");
        metrics.passed("error", Duration::from_millis(2));
        metrics.errors.get_or_create(&[("category", "transient".into()), ("reason", "Busy".into())]).inc();
        metrics.backing_off.set(3);
        metrics.watch_errors.get_or_create(&Metrics::of("Pod")).inc();
        metrics.unreadable.get_or_create(&Metrics::of("Pod")).set(2);
        metrics.observed(&BTreeMap::from([("Widget".into(), false)]));
        metrics.writes.get_or_create(&[("verb", "apply".into()), ("code", "200".into())]).inc();
        metrics.repeated_writes.get_or_create(&Metrics::of("Pod")).inc();
        metrics.leader.set(1);
        metrics.settings_errors.inc();
        metrics.settings_in_force("abc");
        metrics.settings_kept_out.set(1);
        metrics.event("published");
        metrics.unserved.set(4);
        assert_eq!(metrics.encode().unwrap(), include_str!("metrics_page.txt"));
    }
}
