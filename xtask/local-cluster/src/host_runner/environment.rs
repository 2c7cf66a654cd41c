//! A container's environment variables.

use std::{collections::BTreeMap, net::Ipv4Addr};

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVar, Pod, Secret};
use kube::{Api, Client, ResourceExt};

use super::{board::Trouble, downward, variables::expand};

type Values = BTreeMap<String, String>;

/// Reads and expands the variables in the order in which Kubernetes does. What they refer to is read at
/// every start of the container, as a kubelet does it.
pub async fn resolve(
    client: &Client,
    pod: &Pod,
    container: &Container,
    address: Ipv4Addr,
    given: Values,
) -> Result<Values, Trouble> {
    let mut sources =
        Sources { client, namespace: pod.namespace().unwrap_or_default(), read: BTreeMap::new() };
    let mut variables = given;
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        let (kind, name, optional) = match (&from.config_map_ref, &from.secret_ref) {
            (Some(map), _) => (Kind::ConfigMap, &map.name, map.optional),
            (None, Some(secret)) => (Kind::Secret, &secret.name, secret.optional),
            (None, None) => continue,
        };
        let values = sources.all(kind, name, optional.unwrap_or_default()).await?;
        variables.extend(values.iter().map(|(key, value)| (format!("{prefix}{key}"), value.clone())));
    }
    for variable in container.env.iter().flatten() {
        let value = match &variable.value {
            Some(value) => Some(expand(value, &variables)),
            None => sources.value_from(pod, container, address, variable).await?,
        };
        if let Some(value) = value {
            variables.insert(variable.name.clone(), value);
        }
    }
    Ok(variables)
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    ConfigMap,
    Secret,
}

/// What variables refer to, each read once per start.
struct Sources<'a> {
    client: &'a Client,
    namespace: String,
    read: BTreeMap<(Kind, String), Option<Values>>,
}

impl Sources<'_> {
    async fn value_from(
        &mut self,
        pod: &Pod,
        container: &Container,
        address: Ipv4Addr,
        variable: &EnvVar,
    ) -> Result<Option<String>, Trouble> {
        // A variable without value and source is empty.
        let Some(from) = &variable.value_from else { return Ok(Some(String::new())) };
        if let Some(field) = &from.field_ref {
            return downward::field(pod, address, &field.field_path).map(Some).map_err(config_error);
        }
        if let Some(resource) = &from.resource_field_ref {
            return downward::resource(pod, Some(container), resource).map(Some).map_err(config_error);
        }
        if let Some(key) = &from.config_map_key_ref {
            return self.key(Kind::ConfigMap, &key.name, &key.key, key.optional.unwrap_or_default()).await;
        }
        if let Some(key) = &from.secret_key_ref {
            return self.key(Kind::Secret, &key.name, &key.key, key.optional.unwrap_or_default()).await;
        }
        Err(config_error(format!(
            "the host runner does not know the source of the variable {}",
            variable.name
        )))
    }

    async fn key(
        &mut self,
        kind: Kind,
        name: &str,
        key: &str,
        optional: bool,
    ) -> Result<Option<String>, Trouble> {
        let value = self.all(kind, name, optional).await?.get(key).cloned();
        if value.is_none() && !optional {
            return Err(config_error(format!("couldn't find key {key} in {} {name}", kind.name())));
        }
        Ok(value)
    }

    async fn all(&mut self, kind: Kind, name: &str, optional: bool) -> Result<&Values, Trouble> {
        let place = (kind, name.to_owned());
        if !self.read.contains_key(&place) {
            let values = self.fetch(kind, name).await.map_err(|error| config_error(error.to_string()))?;
            self.read.insert(place.clone(), values);
        }
        match self.read.get(&place) {
            Some(Some(values)) => Ok(values),
            _ if optional => Ok(const { &Values::new() }),
            _ => Err(config_error(format!("{} {name:?} not found", kind.name()))),
        }
    }

    async fn fetch(&self, kind: Kind, name: &str) -> kube::Result<Option<Values>> {
        Ok(match kind {
            Kind::ConfigMap => Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace)
                .get_opt(name)
                .await?
                .map(|map| map.data.unwrap_or_default()),
            Kind::Secret => {
                let secret =
                    Api::<Secret>::namespaced(self.client.clone(), &self.namespace).get_opt(name).await?;
                let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
                secret.map(|secret| {
                    secret.data.into_iter().flatten().map(|(key, value)| (key, text(value.0))).collect()
                })
            }
        })
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
        }
    }
}

fn config_error(message: impl Into<String>) -> Trouble {
    Trouble::new("CreateContainerConfigError", message)
}
