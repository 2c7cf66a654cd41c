//! Requests on behalf of somebody else, as by kubectl's `--as`. The client library sends what the kubeconfig says about it.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use clap::Args;
use http::HeaderValue;
use kube::config::AuthInfo;

/// The impersonated user.
#[derive(Args, Clone, Debug, Default)]
pub struct Impersonation {
    /// The user to act as, for example system:serviceaccount:catena-system:command-binder
    #[arg(id = "as", long = "as", global = true, value_name = "USER")]
    pub user: Option<String>,
    /// A group to act as; can be given several times
    #[arg(id = "as-group", long = "as-group", global = true, value_name = "GROUP")]
    pub groups: Vec<String>,
    /// The uid to act as
    #[arg(id = "as-uid", long = "as-uid", global = true, value_name = "UID")]
    pub uid: Option<String>,
}

impl Impersonation {
    /// Sets the impersonated user of a kubeconfig. Options replace all that it says.
    ///
    /// # Errors
    /// When there is a group or a uid without a user, or a name that no header can hold.
    pub fn apply(&self, kubeconfig: &mut AuthInfo) -> Result<()> {
        if self.user.is_some() || self.uid.is_some() || !self.groups.is_empty() {
            kubeconfig.impersonate.clone_from(&self.user);
            kubeconfig.impersonate_uid.clone_from(&self.uid);
            kubeconfig.impersonate_groups = Some(self.groups.clone());
            kubeconfig.impersonate_user_extra = None;
        }
        let (user, uid) = (&kubeconfig.impersonate, &kubeconfig.impersonate_uid);
        let groups = kubeconfig.impersonate_groups.as_deref().unwrap_or_default();
        let extra = kubeconfig.impersonate_user_extra.as_ref();
        if user.is_none() && (uid.is_some() || !groups.is_empty() || extra.is_some()) {
            bail!("a group or a uid is impersonated only together with a user: add --as");
        }
        let extra = extra.into_iter().flat_map(HashMap::values).flatten();
        for value in user.iter().chain(uid).chain(groups).chain(extra) {
            let refused = || format!("{value:?} cannot be impersonated: no request header can hold it");
            HeaderValue::from_str(value).with_context(refused)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::Request;
    use kube::{Config, client::ConfigExt};
    use tower::{Layer, ServiceExt, service_fn};

    use super::*;

    /// The headers of a request with this kubeconfig.
    async fn told(impersonation: &Impersonation, kubeconfig: &AuthInfo) -> Vec<String> {
        let mut config = Config::new("http://localhost".parse().unwrap());
        config.auth_info = kubeconfig.clone();
        impersonation.apply(&mut config.auth_info).unwrap();
        let service = service_fn(|request: Request<()>| async move {
            let headers = request.headers().iter();
            let texts = headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
            Ok::<_, Infallible>(texts.collect::<Vec<_>>())
        });
        config.extra_headers_layer().unwrap().layer(service).oneshot(Request::new(())).await.unwrap()
    }

    /// A user must not get the groups of another one.
    #[tokio::test]
    async fn options_replace_what_the_kubeconfig_says() {
        let kubeconfig = AuthInfo {
            impersonate: Some("jane".into()),
            impersonate_groups: Some(vec!["team".into()]),
            impersonate_user_extra: Some([("Scopes".to_owned(), vec!["view".to_owned()])].into()),
            ..AuthInfo::default()
        };
        let nothing = Impersonation::default();
        let expected =
            ["impersonate-user: jane", "impersonate-group: team", "impersonate-extra-scopes: view"];
        assert_eq!(told(&nothing, &kubeconfig).await, expected);
        let bob = Impersonation { user: Some("bob".into()), ..nothing.clone() };
        assert_eq!(told(&bob, &kubeconfig).await, ["impersonate-user: bob"]);
        assert!(told(&nothing, &AuthInfo::default()).await.is_empty());
    }

    #[test]
    fn a_group_without_a_user_is_refused() {
        let group = Impersonation { groups: vec!["team".into()], ..Impersonation::default() };
        let error = group.apply(&mut AuthInfo::default()).unwrap_err().to_string();
        assert!(error.contains("add --as"), "{error}");
        let line = Impersonation { user: Some("a\nb".into()), ..Impersonation::default() };
        let error = line.apply(&mut AuthInfo::default()).unwrap_err().to_string();
        assert!(error.contains("no request header can hold it"), "{error}");
    }
}
