//! What an admission webhook or another admission plugin added to a pod when it was created, as its managed fields do not tell.

use catena_api::keys;
use catena_cluster::{list, text};

use super::{Cause, Facts, contest, edges, objects, placement};
use crate::Node;

/// Why a pod has no node, if it is for what it asks and its template does not, as far as that is known.
pub fn added(pod: &Node, owner: &Node, settings: &str) -> Option<String> {
    let template = match (owner.identity.group(), owner.identity.kind.as_str()) {
        _ if edges::node_of(pod).is_some() => return None,
        ("apps" | "batch", _) => owner.object.data["spec"]["template"].to_string(),
        // The template may take it from the parameters.
        (keys::GROUP, "BasicReplicaSet") if !settings.is_empty() => {
            format!("{settings}{}", owner.object.data["spec"])
        }
        _ => return None,
    };
    let asked: Vec<_> = if edges::needs_nodes(pod) {
        let selector = pod.object.data["spec"]["nodeSelector"].as_object().into_iter().flatten();
        let terms =
            list(&pod.object, placement::TERMS).filter_map(|term| term["matchExpressions"].as_array());
        let affinity =
            terms.flatten().filter_map(|asked| Some(("node affinity for", asked["key"].as_str()?)));
        selector.map(|(key, _)| ("node selector", key.as_str())).chain(affinity).collect()
    } else {
        text(&pod.object, "/spec/schedulerName").map(|name| ("scheduler", name)).into_iter().collect()
    };
    let (what, word) = asked.into_iter().find(|(_, word)| !template.contains(word))?;
    (word != "default-scheduler").then(|| format!("the {what} {word}"))
}

/// The cause of a pod that has no node, with who may have added what its template does not have.
pub fn blamed(cause: Cause, pod: &Node, facts: &Facts) -> Cause {
    let related = &facts.surroundings.related;
    // If there are nodes with what it asks for, it has another obstacle.
    let has_place = related.nodes.iter().any(|node| placement::selects(pod, node));
    let is_it = !has_place && (pod.health.message.contains("selector") || !edges::needs_nodes(pod));
    let owner = objects::above(pod, facts).filter(|_| is_it);
    let added = owner.and_then(|owner| added(pod, owner, &facts.surroundings.settings));
    let Some(added) = added else { return cause };
    let may_add = related.writers.iter();
    let may_add = may_add.filter(|writer| contest::webhooks_for(writer, &pod.identity).is_some());
    let by = may_add.fold(String::new(), |by, writer| format!("{by}, perhaps by {}", writer.identity));
    let names = [("{meaning}", &*cause.meaning), ("{added}", &added), ("{by}", &by)];
    cause.clone().in_case("added field", &names)
}
