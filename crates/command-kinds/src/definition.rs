//! A kind of commands that is described by its own definition.

use catena_api::keys;
use operator_watch::PrunedObject;
use serde_json::Value;

use crate::kind::{CommandKind, DescriptionFile, KindFile};

/// The kind of commands that a definition describes in its annotation, or the mistake in it.
pub fn describe(definition: &PrunedObject) -> Result<CommandKind, String> {
    let annotation = definition.metadata.annotations.as_ref().and_then(|all| all.get(keys::BINDING));
    let annotation = annotation.ok_or_else(|| {
        format!(
            "the annotation {} is missing; describe in it how commands of this kind are bound",
            keys::BINDING
        )
    })?;
    let description: DescriptionFile = serde_saphyr::from_str(annotation)
        .map_err(|error| format!("the annotation {} cannot be parsed: {error}", keys::BINDING))?;
    let spec = &definition.data["spec"];
    let kind = served(spec, description).ok_or("the definition serves no version; serve one")?;
    CommandKind::compile(kind).map_err(|problem| format!("the annotation {}: {problem}", keys::BINDING))
}

/// The kind with this description, in the stored version if it is served, otherwise in the first served one.
fn served(spec: &Value, description: DescriptionFile) -> Option<KindFile> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let versions = spec["versions"].as_array()?;
    let served = || versions.iter().filter(|version| version["served"] == true);
    let version = served().find(|version| version["storage"] == true).or_else(|| served().next())?;
    let (group, version) = (text(&spec["group"])?, text(&version["name"])?);
    let (kind, resource) = (text(&spec["names"]["kind"])?, text(&spec["names"]["plural"])?);
    Some(KindFile { id: format!("{resource}.{group}"), group, version, resource, kind, description })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(binding: &str) -> PrunedObject {
        serde_json::from_value(json!({
            "metadata": {"name": "d", "uid": "u", "annotations": {keys::BINDING: binding}},
            "spec": {
                "group": "ops.example", "scope": "Namespaced",
                "names": {"plural": "drains", "kind": "Drain"},
                "versions": [
                    {"name": "v1", "served": false, "storage": true},
                    {"name": "v2", "served": true, "storage": false},
                ],
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_definition_describes_its_commands_in_a_version_that_is_served() {
        let kind = describe(&definition(
            "{target: {name: object.spec.pod, kinds: [{version: v1, resource: pods, kind: Pod}]}}",
        ))
        .unwrap();
        assert_eq!((&*kind.id, &*kind.resource.api_version), ("drains.ops.example", "ops.example/v2"));
    }

    #[test]
    fn the_definitions_of_the_examples_describe_kinds_that_are_carried_out_and_ship_their_policies() {
        let definitions = include_str!("../../../examples/commands/definitions.yaml");
        let restarts = include_str!("../../../examples/commands/rollout-restarts.yaml");
        for file in [definitions, restarts] {
            let all = operator_templates::Yaml::read_all(file).unwrap();
            let kind = describe(&serde_json::from_value(all[0].clone()).unwrap()).unwrap();
            assert!(kind.run.is_some(), "{}", kind.id);
            let policy = all.iter().find(|one| one["kind"] == "ValidatingAdmissionPolicy").unwrap();
            let rule = &policy["spec"]["matchConstraints"]["resourceRules"][0];
            assert_eq!(
                (&rule["apiGroups"], &rule["resources"], &rule["operations"]),
                (&json!([kind.resource.group]), &json!([kind.resource.plural]), &json!(["CREATE"]))
            );
            let binding = all.iter().find(|one| one["kind"] == "ValidatingAdmissionPolicyBinding").unwrap();
            assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
        }
    }

    #[test]
    fn a_mistake_in_a_definition_is_named() {
        let cases = [
            ("{}", "target"),
            ("{tarjet: {}}", "tarjet"),
            ("{target: {name: objct.x, kinds: [{version: v1, resource: p, kind: P}]}}", "no variable objct"),
            ("{target: {name: object.x, kinds: []}}", "target.kinds: is empty"),
        ];
        for (binding, expected) in cases {
            let problem = describe(&definition(binding)).unwrap_err();
            assert!(problem.contains(expected) && problem.contains(keys::BINDING), "{binding}: {problem}");
        }
    }
}
