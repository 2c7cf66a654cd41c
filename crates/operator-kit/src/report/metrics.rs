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

/// Defines the metrics, each with its name and help text.
macro_rules! metrics {
    ($($field:ident: $metric:ty = $add:ident($($argument:expr),+);)+) => {
        /// The metrics of the process.
        pub(crate) struct Metrics {
            /// A controller can add metrics of its own.
            pub registry: Mutex<Registry>,
            $(pub $field: $metric,)+
        }

        impl Metrics {
            /// Metrics whose names begin with a prefix.
            pub fn new(prefix: &str) -> Self {
                let mut all = Registry::with_prefix(prefix);
                Self { $($field: $add(&mut all, $($argument),+),)+ registry: Mutex::new(all) }
            }
        }
    };
}

metrics! {
    passes: Family<Labels<1>, Counter> = add("reconcile", "Reconciliations of an object, by result");
    pass_seconds: Histogram =
        in_seconds("reconcile_time", "Duration of a reconciliation",
            Histogram::new(exponential_buckets(0.000_1, 4.0, 10)));
    errors: Family<Labels<2>, Counter> =
        add("reconcile_errors", "Failed reconciliations, by category and reason");
    backing_off: Gauge<u64, AtomicU64> =
        add("objects_in_backoff", "Objects whose last reconciliation failed");
    last_success: Gauge<f64, AtomicU64> =
        in_seconds("last_successful_reconcile_timestamp", "Time of the last successful reconciliation, in seconds since 1970",
            Gauge::default());
    watch_errors: Family<Labels<1>, Counter> = add("watch_errors", "Failures of watches, by kind");
    unreadable: Family<Labels<1>, Gauge<u64, AtomicU64>> =
        add("unreadable_objects", "Objects that cannot be read and are skipped, by kind");
    kinds_observed: Family<Labels<1>, Gauge> =
        add("kind_observed", "1 while a watched kind is observed; 0 while it is not served, or its watch keeps failing");
    writes: Family<Labels<2>, Counter> = add("writes", "Writes to the API server, by verb and answer");
    repeated_writes: Family<Labels<1>, Counter> =
        add("repeated_writes", "Reconciliations that repeated the same write too often, by the kind written");
    leader: Gauge = add("leader", "1 while this process holds the Lease");
    settings_errors: Counter = add("settings_errors", "Changes of the settings that were rejected");
    settings: Family<Labels<1>, Gauge> =
        add("settings_info", "1 for the settings in force, by the sha256 of their text");
    settings_kept_out: Gauge =
        add("settings_kept_out", "1 while newer settings are not in force: refused, or waiting for rights");
    events: Family<Labels<1>, Counter> =
        add("events", "Events about objects, by whether they were published");
    unserved: Gauge<u64, AtomicU64> =
        add("kinds_not_served", "Configured kinds that the cluster does not serve in the configured version");
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
