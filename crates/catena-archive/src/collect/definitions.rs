//! The definitions of the kinds of a backup, and what their other versions hold.

use anyhow::Result;
use catena_api::compatibility::{self, Finding, Rule};
use catena_cluster::{Gap, Kind};
use serde_json::Value;

use super::Collection;

impl Collection<'_> {
    /// The definitions of the kinds, as far as they may be read. The core kinds have none, and no group in their names.
    pub async fn definitions(&mut self) -> Result<()> {
        let kind = Kind::definitions();
        let names: Vec<String> =
            self.saved.objects.keys().filter(|name| name.contains('.')).cloned().collect();
        for name in names {
            match self.cluster.at(&kind, None, &name).read().await {
                Ok(Some(definition)) => {
                    self.lack_other_versions(&name, &definition);
                    self.add(&kind, definition)?;
                }
                // A kind of an aggregated server.
                Ok(None) => {}
                Err(error) => self.miss(Some(&kind), Gap::of(format!("the definition {name}"), &error)),
            }
        }
        Ok(())
    }

    /// What of an object may be stored in another version than the one that was read, which lacks it.
    fn lack_other_versions(&mut self, name: &str, definition: &Value) {
        let kind = self.cluster.kinds.defined_by(name);
        let read = kind.map(|kind| kind.resource.version.as_str()).unwrap_or_default();
        let stored = definition["status"]["storedVersions"].as_array().into_iter().flatten();
        let others: Vec<&Value> = stored.filter(|version| *version != read).collect();
        let is_lost = |finding: &Finding| {
            let is_stored = others.iter().any(|version| **version == finding.version);
            finding.rule == Rule::VersionsDiffer && is_stored && !finding.path.starts_with("status")
        };
        let lost = compatibility::policy(definition).into_iter().find(is_lost);
        // A webhook brings the fields of other versions along.
        if let Some(Finding { version, path, .. }) = lost
            && definition["spec"]["conversion"]["strategy"] != "Webhook"
        {
            let why = format!(
                "objects may be stored in {version}, and were read in {read}, which lacks them: first migrate the objects: `kubectl \
                 catena upgrade migrate {name} --to {version}`"
            );
            self.lack(Gap::new(format!("fields of {name}, such as {path}"), why));
        }
    }
}
