//! Checks a new definition against the installed one and every live object.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use catena_api::compatibility::{self, Finding, Rule};
use catena_cluster::{Cluster, Gap, LostField, ObjectName};
use serde::Serialize;
use serde_json::Value;

use super::{Cause, Definition, Scratch, Verdict, definition, objects};

/// What a new definition would do.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// The name of the definition.
    pub name: String,
    /// Whether it is installed; otherwise there is nothing to compare it with.
    pub installed: bool,
    /// Rules that it breaks.
    pub findings: Vec<Finding>,
    /// The reason for which the server would refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_definition: Option<String>,
    /// What to do first, so that the server takes it.
    #[serde(skip)]
    pub first: String,
    /// The number of tried objects.
    pub objects: usize,
    /// Objects that would be refused.
    pub refused: Vec<Refused>,
    /// Objects that would lose fields.
    pub pruned: Vec<ObjectFields>,
    /// Fields that would be dropped from objects in which they hold only their default, and how many these are.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub defaults_dropped: BTreeMap<String, usize>,
    /// Objects, or versions of the definition, about which nothing is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<Gap>,
}

/// An object that would be refused.
#[derive(Debug, Serialize)]
pub struct Refused {
    /// Its place.
    #[serde(flatten)]
    pub object: ObjectName,
    /// The reasons.
    pub causes: Vec<Cause>,
}

/// An object with fields that it would lose.
#[derive(Debug, Serialize)]
pub struct ObjectFields {
    /// Its place.
    #[serde(flatten)]
    pub object: ObjectName,
    /// The fields.
    pub fields: Vec<LostField>,
}

impl Checked {
    /// Whether a live object would be changed or refused, or the definition itself.
    #[must_use]
    pub fn harms(&self) -> bool {
        self.refused_definition.is_some() || !self.refused.is_empty() || !self.pruned.is_empty()
    }
}

/// Checks the definition that is to replace an installed one. The scratch definition in `scratch` must be removed afterwards,
/// also if this does not come to its end.
///
/// # Errors
/// When a request fails that tells more than one object.
pub async fn check<'c>(
    cluster: &'c Cluster,
    new: &'c Definition,
    id: Option<&str>,
    scratch: &mut Option<Scratch<'c>>,
) -> Result<Checked> {
    let live = definition::installed(cluster, new.name()).await?;
    let refused_definition = new.refusal(cluster, live.as_ref()).await?;
    let mut checked = Checked { name: new.name().to_owned(), refused_definition, ..Checked::default() };
    let Some(live) = live else { return Ok(checked) };
    checked.installed = true;
    if checked.refused_definition.as_ref().is_some_and(|refusal| refusal.contains("status.storedVersions")) {
        checked.first = live.way_to(new) + "\n";
    }
    checked.findings = findings(&live, new);
    // It is known before it is created: an interruption may come between.
    let scratch = scratch.insert(Scratch::planned(cluster, new, id));
    match scratch.create().await {
        Ok(()) => scratch.while_claimed(objects(scratch, &live, &mut checked)).await?,
        // A schema that the server does not accept is already named.
        Err(error) if checked.refused_definition.is_some() => {
            let why = format!("the new schema cannot be tried: {error:#}");
            checked.unchecked.push(Gap::new("all objects", why));
        }
        Err(error) => return Err(error),
    }
    Ok(checked)
}

/// Broken rules; those about versions beside each other only as far as the installed definition does not break them, too.
/// That a definition of others is converted by a webhook is no concern here.
fn findings(live: &Definition, new: &Definition) -> Vec<Finding> {
    let before = compatibility::policy(live.document());
    let policy = compatibility::policy(new.document()).into_iter();
    let is_new = |finding: &Finding| finding.rule != Rule::ConversionByWebhook && !before.contains(finding);
    let mut findings = compatibility::changes(live.document(), new.document());
    findings.extend(policy.filter(is_new));
    findings
}

/// Tries every object in the form in which it is stored.
async fn objects(scratch: &Scratch<'_>, live: &Definition, checked: &mut Checked) -> Result<()> {
    let stored = live.stored().into_iter();
    let (mut readable, hidden): (Vec<_>, Vec<_>) = stored.partition(|version| live.is_served(version));
    checked.unchecked.extend(hidden.into_iter().map(|version| {
        let what = format!("what only version {version} holds");
        let why = "objects may be stored in it, but it is not served: set served: true for it to include it";
        Gap::new(what, why)
    }));
    readable.sort_by_key(|version| *version != live.storage());
    let [first, others @ ..] = &*readable else { return Ok(()) };
    // A webhook decides what is kept in another version.
    let others = if live.is_converted_by_webhook() { &[] } else { others };
    scratch.until_served(scratch.model.storage()).await?;
    let attempt = async |object| try_object(scratch, live, (first, others), object).await;
    let add = |place, verdict| checked.add(place, verdict);
    objects::each(scratch.cluster, live, first, "trying", attempt, add).await
}

/// Tries an object as it is read in each version in which it may be stored, and in each version of the new definition to
/// which it comes: the same one, and the one in which it will be stored.
async fn try_object(
    scratch: &Scratch<'_>,
    live: &Definition,
    (first, others): (&str, &[&str]),
    object: Value,
) -> kube::Result<Verdict> {
    let (new, mut forms) = (scratch.model, vec![(first, object)]);
    for version in others {
        let form = objects::read(scratch.cluster, &live.kind(version), &forms[0].1).await?;
        forms.extend(form.map(|form| (*version, form)));
    }
    let mut whole = Verdict::default();
    for (version, form) in &forms {
        let mut targets: BTreeSet<&str> = new.version(version).map(|_| *version).into_iter().collect();
        if targets.is_empty() || !new.is_converted_by_webhook() {
            targets.insert(new.storage());
        }
        for target in targets {
            whole.add(scratch.verdict(target, live.schema(version), form).await?);
        }
    }
    Ok(whole)
}

impl Checked {
    fn add(&mut self, object: ObjectName, verdict: kube::Result<Verdict>) {
        let Verdict { refused, lost } = match verdict {
            Ok(verdict) => verdict,
            Err(error) => return self.unchecked.push(Gap::of(object.to_string(), &error)),
        };
        self.objects += 1;
        if !refused.is_empty() {
            self.refused.push(Refused { object: object.clone(), causes: refused });
        }
        // Nobody has set what only holds its default, probably.
        let (defaults, fields): (Vec<_>, Vec<_>) = lost.into_iter().partition(|field| field.is_default);
        for field in defaults.iter().map(LostField::general).collect::<BTreeSet<_>>() {
            *self.defaults_dropped.entry(field).or_default() += 1;
        }
        if !fields.is_empty() {
            self.pruned.push(ObjectFields { object, fields });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::tests::definition;

    #[test]
    fn a_rule_that_the_installed_definition_breaks_as_well_is_no_finding() {
        let with = |change: &dyn Fn(&mut Value)| {
            let mut document = definition(&json!({"size": {"type": "integer"}}));
            change(&mut document);
            Definition::new(document).unwrap()
        };
        let deprecated = with(&|d| d["spec"]["versions"][0]["deprecated"] = true.into());
        assert!(findings(&deprecated, &deprecated).is_empty());
        let rules: Vec<_> =
            findings(&with(&|_| {}), &deprecated).into_iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, [Rule::DeprecationUnexplained]);
    }
}
