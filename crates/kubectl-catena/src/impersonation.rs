//! Requests on behalf of somebody else, as by kubectl's `--as`. The client library reads this from a kubeconfig and leaves the
//! headers to its caller; without them, a request would have all rights of the real user.

use anyhow::{Context, Result, bail};
use clap::Args;
use http::{HeaderName, HeaderValue};
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
    /// The headers of each request. Options replace what the kubeconfig says.
    ///
    /// # Errors
    /// When there is a group or a uid without a user, or a name that no header can hold.
    pub fn headers(&self, kubeconfig: &AuthInfo) -> Result<Vec<(HeaderName, HeaderValue)>> {
        let is_given = self.user.is_some() || self.uid.is_some() || !self.groups.is_empty();
        let (user, uid, groups, extra) = if is_given {
            (self.user.as_ref(), self.uid.as_ref(), self.groups.clone(), None)
        } else {
            let groups = kubeconfig.impersonate_groups.clone().unwrap_or_default();
            let extra = kubeconfig.impersonate_user_extra.as_ref();
            (kubeconfig.impersonate.as_ref(), kubeconfig.impersonate_uid.as_ref(), groups, extra)
        };
        if user.is_none() && (uid.is_some() || !groups.is_empty() || extra.is_some()) {
            bail!("a group or a uid is impersonated only together with a user: add --as");
        }
        let one = |name: &'static str, value: &String| header(name, value);
        let mut headers: Vec<_> = user.map(|user| one("impersonate-user", user)).into_iter().collect();
        headers.extend(uid.map(|uid| one("impersonate-uid", uid)));
        headers.extend(groups.iter().map(|group| one("impersonate-group", group)));
        for (key, values) in extra.into_iter().flatten() {
            let name = format!("impersonate-extra-{}", key.to_lowercase());
            headers.extend(values.iter().map(|value| header(&name, value)));
        }
        headers.into_iter().collect()
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue)> {
    let refused = || format!("{value:?} cannot be impersonated: no request header can hold it");
    let name = HeaderName::try_from(name).with_context(refused)?;
    Ok((name, HeaderValue::try_from(value).with_context(refused)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(impersonation: &Impersonation, kubeconfig: &AuthInfo) -> Vec<String> {
        let headers = impersonation.headers(kubeconfig).unwrap();
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn options_replace_what_the_kubeconfig_says() {
        let kubeconfig = AuthInfo {
            impersonate: Some("jane".into()),
            impersonate_groups: Some(vec!["team".into()]),
            impersonate_user_extra: Some([("Scopes".to_owned(), vec!["view".to_owned()])].into()),
            ..AuthInfo::default()
        };
        let nothing = Impersonation::default();
        let expected =
            ["impersonate-user: jane", "impersonate-group: team", "impersonate-extra-scopes: view"];
        assert_eq!(told(&nothing, &kubeconfig), expected);
        let bob = Impersonation { user: Some("bob".into()), ..nothing.clone() };
        assert_eq!(told(&bob, &kubeconfig), ["impersonate-user: bob"]);
        assert!(told(&nothing, &AuthInfo::default()).is_empty());
    }

    #[test]
    fn a_group_without_a_user_is_refused() {
        let group = Impersonation { groups: vec!["team".into()], ..Impersonation::default() };
        let error = group.headers(&AuthInfo::default()).unwrap_err().to_string();
        assert!(error.contains("add --as"), "{error}");
        let line = Impersonation { user: Some("a\nb".into()), ..Impersonation::default() };
        assert!(line.headers(&AuthInfo::default()).is_err());
    }
}
