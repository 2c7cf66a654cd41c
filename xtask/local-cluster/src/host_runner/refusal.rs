//! Refuses pods with fields that the host runner does not support, instead of running them without.

use k8s_openapi::api::core::v1::{ContainerStateWaiting as Waiting, PodSpec};
use serde_json::Value;

use super::status::waiting;

/// The supported fields of each object of a pod; everything below a field that has no line of its own is supported, too.
const CARRIED_OUT: &[(&str, &str)] = &[
    ("", "containers restartPolicy serviceAccountName terminationGracePeriodSeconds volumes"),
    ("containers", "args env image imagePullPolicy livenessProbe name ports readinessProbe volumeMounts"),
    ("containers.env", "name value valueFrom"),
    ("containers.env.valueFrom", "fieldRef"),
    ("containers.livenessProbe", PROBE),
    ("containers.livenessProbe.httpGet", HTTP_GET),
    ("containers.readinessProbe", PROBE),
    ("containers.readinessProbe.httpGet", HTTP_GET),
    ("containers.volumeMounts", "mountPath name"),
    ("volumes", "configMap name projected"),
    ("volumes.configMap", "name"),
    ("volumes.projected", "sources"),
    ("volumes.projected.sources", "configMap downwardAPI serviceAccountToken"),
    ("volumes.projected.sources.configMap", "items name"),
    ("volumes.projected.sources.downwardAPI", "items"),
    ("volumes.projected.sources.downwardAPI.items", "fieldRef path"),
];
const PROBE: &str =
    "failureThreshold httpGet initialDelaySeconds periodSeconds successThreshold timeoutSeconds";
const HTTP_GET: &str = "path port scheme";

/// Fields of the scheduler, of admission, and of containers that a process lacks, because it is not confined.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    // Containers that are added to a running pod never run, and their status shows that.
    ("", "affinity automountServiceAccountToken dnsPolicy enableServiceLinks ephemeralContainers nodeName"),
    ("", "imagePullSecrets nodeSelector preemptionPolicy priority priorityClassName schedulerName"),
    ("", "securityContext serviceAccount tolerations topologySpreadConstraints"),
    ("containers", "resources securityContext terminationMessagePath terminationMessagePolicy"),
    ("containers.volumeMounts", "readOnly"),
    ("volumes.configMap", "defaultMode"),
    ("volumes.projected", "defaultMode"),
];

/// Fields of which only some values are supported.
const VALUES: &[(&str, &str)] = &[
    ("restartPolicy", "Always Never"),
    ("containers.livenessProbe.httpGet.scheme", "HTTP"),
    ("containers.readinessProbe.httpGet.scheme", "HTTP"),
];

/// The reason why the pod is not run, if it has an unsupported field.
pub fn of(spec: &PodSpec) -> Option<Waiting> {
    let asked = match serde_json::to_value(spec) {
        Ok(spec) => first_unknown(&spec, "")?,
        Err(error) => error.to_string(),
    };
    let message =
        format!("the host runner does not do {asked}: leave it out, or use a cluster with a kubelet");
    Some(waiting("CreateContainerConfigError", message))
}

/// The first unsupported field below `path`, or field with its value.
fn first_unknown(value: &Value, path: &str) -> Option<String> {
    let fields = match value {
        Value::Array(items) => return items.iter().find_map(|item| first_unknown(item, path)),
        Value::Object(fields) if !words(CARRIED_OUT, path).is_empty() => fields,
        Value::String(text) => {
            let values = words(VALUES, path);
            let is_known = values.is_empty() || values.contains(&text.as_str());
            return (!is_known).then(|| format!("spec.{path}={text}"));
        }
        _ => return None,
    };
    fields.iter().find_map(|(field, value)| {
        let is_in = |table| words(table, path).contains(&field.as_str());
        let below = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
        match value {
            Value::Null => None,
            value if is_in(CARRIED_OUT) => first_unknown(value, &below),
            _ => (!is_in(WITHOUT_EFFECT)).then(|| format!("spec.{below}")),
        }
    })
}

/// The words of a path's lines in a table.
fn words(table: &'static [(&str, &str)], path: &str) -> Vec<&'static str> {
    let lines = table.iter().filter(|(of, _)| *of == path);
    lines.flat_map(|(_, words)| words.split(' ')).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A controller's pod, as returned by the API server.
    fn pod() -> Value {
        json!({
            "containers": [{
                "name": "controller", "image": "catena/controller:1", "imagePullPolicy": "IfNotPresent",
                "args": ["--listen=$(POD_IP):8080"],
                "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}],
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                "livenessProbe": {
                    "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "failureThreshold": 3,
                    "initialDelaySeconds": 10, "periodSeconds": 20, "successThreshold": 1, "timeoutSeconds": 1,
                },
                "resources": {"limits": {"memory": "64Mi"}}, "securityContext": {"readOnlyRootFilesystem": true},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "volumeMounts": [{"name": "settings", "mountPath": "/etc/catena", "readOnly": true}],
            }],
            "restartPolicy": "Always", "nodeSelector": {"catena.dev/host-runner": "true"}, "dnsPolicy": "ClusterFirst",
            "volumes": [
                {"name": "settings", "configMap": {"name": "controller", "defaultMode": 420}},
                {"name": "account", "projected": {"defaultMode": 420, "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
                ]}},
            ],
        })
    }

    fn refusal(spec: Value) -> Option<String> {
        of(&serde_json::from_value(spec).unwrap()).and_then(|problem| problem.message)
    }

    #[test]
    fn a_controllers_pod_is_run() {
        assert_eq!(refusal(pod()), None);
    }

    #[test]
    fn what_is_not_done_is_named_and_not_left_out() {
        let probe = |action: &str| json!({action: {"port": 1}, "periodSeconds": 1});
        let exec = json!({"exec": {"command": ["true"]}});
        let https = json!({"httpGet": {"port": 1, "scheme": "HTTPS"}});
        let resource = json!({"resourceFieldRef": {"resource": "limits.cpu"}});
        let liveness = "/containers/0/livenessProbe";
        for (place, value, named) in [
            ("/initContainers", json!([{"name": "a"}]), "spec.initContainers"),
            ("/readinessGates", json!([{"conditionType": "a"}]), "spec.readinessGates"),
            ("/restartPolicy", json!("OnFailure"), "spec.restartPolicy=OnFailure"),
            ("/hostNetwork", json!(true), "spec.hostNetwork"),
            ("/containers/0/command", json!(["sh"]), "spec.containers.command"),
            ("/containers/0/envFrom", json!([{"secretRef": {"name": "a"}}]), "spec.containers.envFrom"),
            ("/containers/0/lifecycle", json!({"preStop": {"sleep": {}}}), "spec.containers.lifecycle"),
            ("/containers/0/startupProbe", probe("httpGet"), "spec.containers.startupProbe"),
            (liveness, probe("tcpSocket"), "spec.containers.livenessProbe.tcpSocket"),
            ("/containers/0/readinessProbe", probe("grpc"), "spec.containers.readinessProbe.grpc"),
            ("/containers/0/readinessProbe", exec, "spec.containers.readinessProbe.exec"),
            (liveness, https, "spec.containers.livenessProbe.httpGet.scheme=HTTPS"),
            ("/containers/0/env/0/valueFrom", resource, "spec.containers.env.valueFrom.resourceFieldRef"),
            ("/containers/0/volumeMounts/0/subPath", json!("a"), "spec.containers.volumeMounts.subPath"),
            ("/volumes/0", json!({"name": "settings", "secret": {"secretName": "a"}}), "spec.volumes.secret"),
            ("/volumes/0", json!({"name": "settings", "emptyDir": {}}), "spec.volumes.emptyDir"),
            ("/volumes/0/configMap/optional", json!(true), "spec.volumes.configMap.optional"),
        ] {
            let mut pod = pod();
            let (parent, field) = place.rsplit_once('/').unwrap();
            match pod.pointer_mut(parent).unwrap() {
                Value::Array(items) => items[field.parse::<usize>().unwrap()] = value,
                parent => parent[field] = value,
            }
            let said = refusal(pod).unwrap_or_default();
            assert!(said.contains(&format!("does not do {named}:")), "{place}: {said}");
        }
    }
}
