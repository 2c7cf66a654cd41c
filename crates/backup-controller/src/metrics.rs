//! Metrics of held objects and of their releases.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use backup_controller::{Settings, status::Outcome};
use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::Counter, family::Family, gauge::ConstGauge},
    registry::{Registry, Unit},
};

/// The entry, and the reason or the outcome.
type Labels = [(&'static str, String); 2];

const OUTCOMES: [Outcome; 3] = [Outcome::BackedUp, Outcome::GivenUp, Outcome::Forced];

/// The currently held objects, and the number of released ones.
#[derive(Clone, Debug, Default)]
pub struct HeldMetrics {
    held: Arc<Mutex<HashMap<String, HeldObject>>>,
    released: Family<Labels, Counter>,
}

#[derive(Debug)]
struct HeldObject {
    why: Labels,
    /// The time for which it had been held when that was recorded, because times of the server are not compared with
    /// another clock.
    age: Duration,
    noted: Instant,
}

impl HeldMetrics {
    /// Adds the metrics to those that are served.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "released_objects",
            "Protected objects that were released, by entry of kinds and outcome",
            self.released.clone(),
        );
        registry.register_collector(Box::new(self.clone()));
    }

    /// Begins to count the releases of each entry with 0: a counter that appears with its first increase hides that from
    /// Prometheus.
    pub fn expect(&self, settings: &Settings) {
        for kind in settings.kinds.values() {
            for outcome in OUTCOMES {
                drop(self.released.get_or_create(&ended(&kind.id, outcome)));
            }
        }
    }

    /// Records that an object is held, and for how long.
    pub fn note(&self, uid: &str, entry: &str, reason: &str, age: Duration) {
        let why = [("entry", entry.to_owned()), ("reason", reason.to_owned())];
        self.held.lock().insert(uid.to_owned(), HeldObject { why, age, noted: Instant::now() });
    }

    /// Records that an object was released.
    pub fn released(&self, uid: &str, entry: &str, outcome: Outcome) {
        self.held.lock().remove(uid);
        self.released.get_or_create(&ended(entry, outcome)).inc();
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.held.lock().remove(uid);
    }
}

fn ended(entry: &str, outcome: Outcome) -> Labels {
    let outcome = match outcome {
        Outcome::BackedUp => "backed_up",
        Outcome::GivenUp => "given_up",
        Outcome::Forced => "forced",
    };
    [("entry", entry.to_owned()), ("outcome", outcome.to_owned())]
}

impl Collector for HeldMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut by_reason: BTreeMap<Labels, (i64, f64)> = BTreeMap::new();
        for held in self.held.lock().values() {
            let (count, oldest) = by_reason.entry(held.why.clone()).or_default();
            *count += 1;
            *oldest = oldest.max((held.age + held.noted.elapsed()).as_secs_f64());
        }
        let gauge = ConstGauge::new(0_i64).metric_type();
        let help = "Objects that are waiting for their backup, by entry of kinds and reason";
        let mut counts = encoder.encode_descriptor("held_objects", help, None, gauge)?;
        for (why, (count, _)) in &by_reason {
            ConstGauge::new(*count).encode(counts.encode_family(why)?)?;
        }
        let help = "Age of the oldest deletion that is waiting for a backup, by entry of kinds and reason";
        let mut oldest = encoder.encode_descriptor("held_oldest", help, Some(&Unit::Seconds), gauge)?;
        for (why, (_, age)) in &by_reason {
            ConstGauge::new(*age).encode(oldest.encode_family(why)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    /// The metrics as they are served.
    pub fn page_of(metrics: &HeldMetrics) -> String {
        let (mut registry, mut page) = (Registry::default(), String::new());
        metrics.register(&mut registry);
        encode(&mut page, &registry).unwrap();
        page
    }

    /// Users have dashboards and alerts for these names and labels.
    #[test]
    fn the_page_keeps_its_names_labels_and_help_texts() {
        let metrics = HeldMetrics::default();
        metrics.note("a", "maps", "BackupFailed", Duration::from_secs(3600));
        metrics.note("b", "maps", "BackupFailed", Duration::from_secs(60));
        metrics.released("c", "maps", Outcome::GivenUp);
        let page = page_of(&metrics);
        // Some time has passed since.
        let without_age = |line| str::split_once(line, "3600.").map_or(line, |(before, _)| before);
        let lines: Vec<_> = page.lines().map(without_age).collect();
        assert_eq!(
            lines,
            [
                "# HELP released_objects Protected objects that were released, by entry of kinds and outcome.",
                "# TYPE released_objects counter",
                r#"released_objects_total{entry="maps",outcome="given_up"} 1"#,
                "# HELP held_objects Objects that are waiting for their backup, by entry of kinds and reason",
                "# TYPE held_objects gauge",
                r#"held_objects{entry="maps",reason="BackupFailed"} 2"#,
                "# HELP held_oldest_seconds Age of the oldest deletion that is waiting for a backup, by entry of kinds and reason",
                "# TYPE held_oldest_seconds gauge",
                "# UNIT held_oldest_seconds seconds",
                r#"held_oldest_seconds{entry="maps",reason="BackupFailed"} "#,
                "# EOF",
            ]
        );
    }
}
