//! Metrics with bounded labels, named by the conventions of Prometheus and controller-runtime.

use std::{
    collections::BTreeMap,
    sync::atomic::AtomicU64,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::{Mutex, MutexGuard};

use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Error {
    category: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Kind {
    kind: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Version {
    version: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Write {
    verb: &'static str,
    code: u16,
}

/// The metrics of the process.
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    passes: Family<Outcome, Counter>,
    pass_seconds: Histogram,
    errors: Family<Error, Counter>,
    backing_off: Gauge,
    last_success: Gauge<f64, AtomicU64>,
    watch_errors: Family<Kind, Counter>,
    unreadable: Family<Kind, Gauge>,
    kinds_observed: Family<Kind, Gauge>,
    writes: Family<Write, Counter>,
    repeated_writes: Family<Kind, Counter>,
    leader: Gauge,
    settings_errors: Counter,
    settings: Family<Version, Gauge>,
    settings_kept_out: Gauge,
    events: Family<Outcome, Counter>,
    unserved: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("catena");
        let metrics = Self {
            passes: Family::default(),
            pass_seconds: Histogram::new(exponential_buckets(0.000_1, 4.0, 10)),
            errors: Family::default(),
            backing_off: Gauge::default(),
            last_success: Gauge::default(),
            watch_errors: Family::default(),
            unreadable: Family::default(),
            kinds_observed: Family::default(),
            writes: Family::default(),
            repeated_writes: Family::default(),
            leader: Gauge::default(),
            settings_errors: Counter::default(),
            settings: Family::default(),
            settings_kept_out: Gauge::default(),
            events: Family::default(),
            unserved: Gauge::default(),
            registry: Mutex::default(),
        };
        registry.register("reconcile", "Reconciliations of an object, by result", metrics.passes.clone());
        registry.register_with_unit(
            "reconcile_time",
            "Duration of a reconciliation",
            Unit::Seconds,
            metrics.pass_seconds.clone(),
        );
        registry.register(
            "reconcile_errors",
            "Failed reconciliations, by category and reason",
            metrics.errors.clone(),
        );
        registry.register(
            "objects_in_backoff",
            "Objects whose last reconciliation failed",
            metrics.backing_off.clone(),
        );
        registry.register_with_unit(
            "last_successful_reconcile_timestamp",
            "Time of the last successful reconciliation, in seconds since 1970",
            Unit::Seconds,
            metrics.last_success.clone(),
        );
        registry.register("watch_errors", "Failures of watches, by kind", metrics.watch_errors.clone());
        registry.register(
            "unreadable_objects",
            "Objects that cannot be read and are skipped, by kind",
            metrics.unreadable.clone(),
        );
        registry.register(
            "kind_observed",
            "1 while a watched kind is observed; 0 while it is not served, or its watch keeps failing",
            metrics.kinds_observed.clone(),
        );
        registry.register("writes", "Writes to the API server, by verb and answer", metrics.writes.clone());
        registry.register(
            "repeated_writes",
            "Reconciliations that repeated the same write too often, by the kind written",
            metrics.repeated_writes.clone(),
        );
        registry.register("leader", "1 while this process holds the Lease", metrics.leader.clone());
        registry.register(
            "settings_errors",
            "Changes of the settings that were rejected",
            metrics.settings_errors.clone(),
        );
        registry.register(
            "settings_info",
            "1 for the settings in force, by the sha256 of their text",
            metrics.settings.clone(),
        );
        registry.register(
            "settings_kept_out",
            "1 while newer settings are not in force: refused, or waiting for rights",
            metrics.settings_kept_out.clone(),
        );
        registry.register(
            "events",
            "Events about objects, by whether they were published",
            metrics.events.clone(),
        );
        registry.register(
            "kinds_not_served",
            "Configured kinds that the cluster does not serve in the configured version",
            metrics.unserved.clone(),
        );
        Self { registry: Mutex::new(registry), ..metrics }
    }
}

impl Metrics {
    pub fn passed(&self, result: &'static str, took: Duration) {
        self.passes.get_or_create(&Outcome { result }).inc();
        self.pass_seconds.observe(took.as_secs_f64());
        if result == "success" {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.last_success.set(now.as_secs_f64());
        }
    }

    pub fn failed(&self, category: &'static str, reason: &'static str) {
        self.errors.get_or_create(&Error { category, reason }).inc();
    }

    pub fn backing_off(&self, objects: usize) {
        self.backing_off.set(i64::try_from(objects).unwrap_or(i64::MAX));
    }

    pub fn watch_failed(&self, kind: &str) {
        self.watch_errors.get_or_create(&Kind { kind: kind.to_owned() }).inc();
    }

    pub fn unreadable(&self, kind: &str, objects: usize) {
        let objects = i64::try_from(objects).unwrap_or(i64::MAX);
        self.unreadable.get_or_create(&Kind { kind: kind.to_owned() }).set(objects);
    }

    /// Sets whether each kind is observed; kinds that are no longer watched disappear.
    pub fn observed(&self, kinds: &BTreeMap<String, bool>) {
        self.kinds_observed.clear();
        for (kind, observed) in kinds {
            self.kinds_observed.get_or_create(&Kind { kind: kind.clone() }).set(i64::from(*observed));
        }
    }

    pub fn wrote(&self, verb: &'static str, code: u16) {
        self.writes.get_or_create(&Write { verb, code }).inc();
    }

    pub fn repeated(&self, kind: &str) {
        self.repeated_writes.get_or_create(&Kind { kind: kind.to_owned() }).inc();
    }

    pub fn leading(&self, leading: bool) {
        self.leader.set(i64::from(leading));
    }

    pub fn settings_refused(&self) {
        self.settings_errors.inc();
    }

    pub fn settings_in_force(&self, version: &str) {
        self.settings.clear();
        self.settings.get_or_create(&Version { version: version.to_owned() }).set(1);
        self.settings_kept_out.set(0);
    }

    pub fn settings_kept_out(&self) {
        self.settings_kept_out.set(1);
    }

    pub fn unserved(&self, kinds: usize) {
        self.unserved.set(i64::try_from(kinds).unwrap_or(i64::MAX));
    }

    pub fn event(&self, result: &'static str) {
        self.events.get_or_create(&Outcome { result }).inc();
    }

    /// The registry, to which a controller can add its own metrics.
    pub fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock()
    }

    /// All metrics in the format of Prometheus (`OpenMetrics`).
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry())?;
        Ok(page)
    }
}
