//! Facts → the answer: the end of the walk, and what else a person has to know.

use catena_api::keys;
use catena_cluster::{Identity, State, condition, list, number};
use catena_terminal::age;
use serde_json::Value;

use super::{
    Answer, Cause, Evidence, Facts, Finding, NOT_RUNNING, command, contest, deletion, edges, failed, objects,
    placement, settings, text as words, troubles, unreported, updates, walk, warnings,
};
use crate::{Node, dependents::labels_at};

/// Finds the root cause.
pub fn diagnose(facts: &Facts) -> Answer {
    let asked = facts.asked;
    let mut finding = walk::explain(asked, facts);
    // An obstacle that stays comes before the changes of others, and these before mere progress.
    let is_minor = |cause: &Cause| cause.is_progress || cause.reason == contest::REASON;
    if finding.as_ref().is_none_or(|finding| is_minor(&finding.cause)) {
        finding = contest::check(facts).or(finding);
    }
    if let Some(Finding { cause, path }) = &mut finding {
        let leaf = path.last().copied().unwrap_or(asked);
        let template = objects::template_of(leaf, facts);
        let advice = words::with_names(&cause.advice, &cause.object).replace("{template}", &template);
        cause.advice = advice.replace("{target}", &command::target_name(leaf, facts));
        if !cause.message.contains("it is retried ") {
            cause.advice.extend(edges::next_retry(leaf, facts.now));
        }
        if objects::has_ended(asked) && objects::is_command(asked) && leaf.identity != asked.identity {
            cause.advice += "; then issue the command again";
        }
    }
    let doubt = if finding.is_some() { None } else { doubt(facts) };
    let well = finding.is_none() && doubt.is_none();
    let sentence = finding.as_ref().map(|finding| words::sentence(asked, &finding.cause, facts.now));
    let sentence = sentence.or(doubt).unwrap_or_else(|| words::well(asked));
    let path = finding.iter().flat_map(|finding| finding.path.iter().rev());
    let evidence = path.map(|node| Evidence { object: node.identity.clone(), health: node.health.clone() });
    let answer = Answer {
        object: asked.identity.clone(),
        well,
        sentence,
        evidence: evidence.collect(),
        remarks: remarks(facts, finding.as_ref()),
        root_cause: finding.map(|finding| finding.cause),
        now: facts.now,
        not_seen: facts.surroundings.gaps.clone(),
    };
    answer.clipped()
}

/// Why an object without a finding cannot be called well: something that would show it was not seen.
fn doubt(facts: &Facts) -> Option<String> {
    let asked = facts.asked;
    let has_ended = asked.health.state == State::Done;
    if facts.surroundings.hides_dependents && !has_ended && !objects::is_confirmed(asked) {
        return Some(words::doubtful(asked, "its dependents could not all be read"));
    }
    if !has_ended && unreported::remarks(facts).next().is_some() {
        return Some(words::outdated(asked));
    }
    command::doubt(facts).map(|doubt| words::doubtful(asked, doubt))
}

fn remarks(facts: &Facts, finding: Option<&Finding>) -> Vec<String> {
    let (mut remarks, asked) = (Vec::new(), facts.asked);
    let cause = finding.map(|finding| &finding.cause);
    let is_cause = |object: &Identity| cause.is_some_and(|cause| cause.object == *object);
    let has_reason = |word: &str| cause.is_some_and(|cause| cause.reason.contains(word));
    let namespace = facts.surroundings.namespace.iter().filter(|namespace| !is_cause(&namespace.identity));
    remarks.extend(namespace.filter_map(|namespace| namespace.deleted).map(|since| {
        let since = age(facts.now, since);
        format!("the namespace has been terminating for {since}: nothing can be created in it")
    }));
    remarks.extend(facts.surroundings.lost_owner.clone());
    remarks.extend(orphan(asked));
    // It may be the finding itself.
    let is_paused = has_reason("Paused") || has_reason("Suspended");
    if asked.deleted.is_none() && !is_paused {
        remarks.extend(at_rest(asked));
    }
    // No correction reaches the pods of what is paused.
    let paused = asked.children.iter().flat_map(Node::all).filter(|below| objects::is_paused(below));
    let paused = paused.filter(|below| below.deleted.is_none() && !is_cause(&below.identity));
    remarks
        .extend(paused.map(|below| format!("the spec.paused of {} is true: {NOTHING_NEW}", below.identity)));
    if let Some(finding) = finding {
        remarks.extend(about_cause(finding, facts, is_paused));
    } else {
        let rolled_back = condition_message(asked, ROLLED_BACK);
        remarks.extend(command::overlooked(facts));
        remarks.extend(rolled_back.map(|message| format!("it was rolled back: {message}")));
        if asked.health.state != State::Done {
            remarks.extend(objects::own_words(asked));
            remarks.extend(warnings::newest(asked, facts));
        }
    }
    remarks.extend(contest::told(asked).filter(|_| !has_reason(contest::REASON)).map(|told| told.message));
    remarks.extend(contest::writers(facts));
    let kept = asked.all().filter_map(updates::withheld).filter(|kept| !is_cause(&kept.object));
    remarks.extend(kept.map(|kept| format!("{} {}", kept.object, kept.meaning)));
    remarks.extend(placement::remarks(facts));
    remarks.extend(failed::remarks(facts, cause));
    remarks.extend(deletion::remarks(facts, cause));
    remarks.extend(settings::remarks(facts, cause));
    remarks.extend(unreported::updating(facts));
    remarks.extend(asked.all().flat_map(|node| {
        let told = ["UnreadParameters", "RestartBlocked"].map(|type_| condition_message(node, type_));
        told.into_iter().flatten().map(|message| format!("{}: {message}", node.identity))
    }));
    remarks.extend(command::outlived(facts));
    let waiting = asked.children.iter().filter(|child| objects::is_waiting(child)).count();
    if waiting > 0 {
        let word = if waiting == 1 { "command is" } else { "commands are" };
        remarks.push(format!("{waiting} {word} not finished: `kubectl catena tree` lists them"));
    }
    if !has_reason(NOT_RUNNING) {
        remarks.extend(unreported::remarks(facts));
    }
    remarks
}

/// What else there is to know about the objects on the way to a cause.
fn about_cause(finding: &Finding, facts: &Facts, is_paused: bool) -> Vec<String> {
    let (Finding { cause, path }, asked) = (finding, &facts.asked.identity);
    // What is paused stays so in each revision.
    let held = path.iter().filter(|node| {
        node.identity != cause.object && !is_paused && condition_message(node, ROLLED_BACK).is_some()
    });
    let mut remarks: Vec<_> = held.map(|node| not_the_spec(&node.identity)).collect();
    remarks.extend(path.iter().flat_map(|node| deletion::other_holders(node, cause, asked)));
    remarks.extend(troubles::others(finding, facts));
    let leaf =
        path.last().filter(|leaf| leaf.identity == cause.object && leaf.identity.group().contains('.'));
    let told = [&cause.reason, &cause.message];
    let is_told = |words: &String| told.iter().any(|told| !told.is_empty() && words.ends_with(*told));
    let words = leaf.into_iter().flat_map(|leaf| objects::own_words(leaf)).filter(|words| !is_told(words));
    remarks.extend(words.map(|words| format!("{}: {words}", words::name_beside(&cause.object, asked))));
    remarks
}

/// The condition of an object that stays on an older revision than its spec asks for.
const ROLLED_BACK: &str = "RolledBack";
/// The effect of a pause.
const NOTHING_NEW: &str = "it begins nothing new until that is changed";

/// What will not happen, because the spec of an object says so.
fn at_rest(node: &Node) -> Vec<String> {
    let effects = [
        ("paused", Value::from(true), NOTHING_NEW),
        ("suspend", true.into(), NOTHING_NEW),
        ("unschedulable", true.into(), "it takes no new pods, except those that tolerate it"),
        ("replicas", 0.into(), "it runs nothing until that is changed"),
        ("parallelism", 0.into(), "it runs nothing until that is changed"),
    ];
    let set = effects.into_iter().filter(|(field, value, _)| node.object.data["spec"][field] == *value);
    let set = set.map(|(field, value, effect)| format!("its spec.{field} is {value}: {effect}"));
    let nowhere =
        "it runs nowhere: no node has what nodeSelector, affinity and tolerations of its pods ask for";
    let is_reported = node.health.state != State::Unreported;
    let is_nowhere = is_reported && number(&node.object, "/status/desiredNumberScheduled") == Some(0);
    set.chain(is_nowhere.then(|| nowhere.to_owned())).chain(unanswered(node)).collect()
}

/// The remark about a Service behind which nothing answers, as the lists of endpoints that it owns say.
fn unanswered(service: &Node) -> Option<String> {
    let selector = labels_at(&service.object, "/spec/selector")?;
    let is_ready = |endpoint: &Value| endpoint.pointer("/conditions/ready") != Some(&false.into());
    let mut slices =
        service.children.iter().filter(|child| child.identity.kind == "EndpointSlice").peekable();
    slices.peek()?;
    if slices.flat_map(|slice| list(&slice.object, "/endpoints")).any(is_ready) {
        return None;
    }
    let advice = format!("`kubectl{{namespace}} get pods --selector {selector}` lists those that have them");
    let advice = words::with_names(&advice, &service.identity);
    Some(format!("nothing answers behind it: no ready pod has the labels of its spec.selector; {advice}"))
}

/// The message of a condition that exists only while it is true.
fn condition_message(node: &Node, type_: &str) -> Option<String> {
    condition(&node.object, type_).filter(|found| found.status == "True").map(|found| found.message)
}

/// The blocker comes from the older revision: to fix the spec would be in vain.
fn not_the_spec(object: &Identity) -> String {
    let advice = "`kubectl catena{namespace} history {name}` lists the others, and `kubectl catena{namespace} rollback {name} --to-revision N` chooses one";
    let advice = words::with_names(advice, object);
    format!(
        "{object} was rolled back, and the blocker comes from that older revision, not from the spec: {advice}"
    )
}

/// A child without its parent, which nothing keeps in line any more.
fn orphan(node: &Node) -> Option<String> {
    let labels = node.object.metadata.labels.as_ref()?;
    let is_orphan = node.object.metadata.owner_references.iter().flatten().next().is_none();
    (labels.contains_key(keys::DEPLOYMENT_UID) && is_orphan && node.deleted.is_none())
        .then(|| "it was left behind by a BasicDeployment that was deleted without it, and nothing keeps it in line; one of its name, spec and template adopts it".to_owned())
}
