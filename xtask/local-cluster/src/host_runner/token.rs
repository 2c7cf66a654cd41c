//! ServiceAccount tokens for local processes.

use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::{
    authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
    core::v1::{Pod, ServiceAccount, ServiceAccountTokenProjection},
};
use kube::{Api, Client, ResourceExt, api::PostParams};

const DEFAULT_SECONDS: i64 = 3600;

/// A token, and when to ask for the next one.
#[derive(Clone)]
pub struct Token {
    pub text: String,
    pub renew_at: Timestamp,
}

/// Asks for a token that is bound to the pod.
pub async fn request(client: &Client, pod: &Pod, wanted: &ServiceAccountTokenProjection) -> Result<Token> {
    let account = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.service_account_name.as_deref())
        .filter(|name| !name.is_empty())
        .unwrap_or("default");
    let seconds = wanted.expiration_seconds.unwrap_or(DEFAULT_SECONDS);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: wanted.audience.clone().map(|audience| vec![audience]),
            expiration_seconds: Some(seconds),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: Some(pod.name_any()),
                uid: pod.uid(),
            }),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let namespace = pod.namespace().unwrap_or_default();
    let answer = Api::<ServiceAccount>::namespaced(client.clone(), &namespace)
        .create_token_request(account, &PostParams::default(), &request)
        .await
        .with_context(|| format!("could not get a token of the ServiceAccount {namespace}/{account}"))?;
    let text = answer
        .status
        .and_then(|status| status.token)
        .context("the answer to a token request holds no token")?;
    // A kubelet renews at 80 % of the lifetime; a token may live longer than requested.
    let lifetime = u64::try_from(seconds).unwrap_or_default();
    let renew_at = Timestamp::now() + Duration::from_secs(lifetime * 8 / 10);
    Ok(Token { text, renew_at })
}
