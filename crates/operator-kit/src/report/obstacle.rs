use kube::{Resource, discovery::ApiResource};

use k8s_openapi::api::{
    admissionregistration::v1::{
        MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
        ValidatingWebhookConfiguration,
    },
    core::v1::{LimitRange, ResourceQuota, ServiceAccount},
};

/// The text before the name of a policy in a message of admission.
pub(crate) const POLICY: &str = "ValidatingAdmissionPolicy '";
/// The text before the name of a webhook that refuses.
pub(crate) const WEBHOOK: &str = "admission webhook \"";
/// The text before the name of a webhook that does not answer.
pub(crate) const UNANSWERED_WEBHOOK: &str = "failed calling webhook";
/// The text before the name of a missing ServiceAccount.
const SERVICE_ACCOUNT: &str = "error looking up service account";
/// The words of a `LimitRange`.
const LIMITS: [&str; 3] =
    [" usage per ", "max limit to request ratio per ", "min limit to request ratio per "];

/// Something that refuses a write, and whose change may lift the refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Obstacle {
    /// An exhausted quota.
    Quota,
    /// A quota that asks for limits, or a range of limits.
    Limits,
    /// A missing account.
    ServiceAccount,
    /// A policy, or its binding.
    Policy,
    /// A webhook.
    Webhook,
}

impl Obstacle {
    /// The obstacle that a message of the API server names: admission has no separate field for it.
    #[must_use]
    pub fn of(message: &str) -> Option<Self> {
        let says = |words: &str| message.contains(words);
        match () {
            () if says(POLICY) => Some(Self::Policy),
            () if says(WEBHOOK) || says(UNANSWERED_WEBHOOK) => Some(Self::Webhook),
            () if says(SERVICE_ACCOUNT) => Some(Self::ServiceAccount),
            () if LIMITS.into_iter().any(says) => Some(Self::Limits),
            () => None,
        }
    }

    /// The kinds of objects whose change may lift the refusal.
    pub(crate) fn kinds(self) -> Vec<ApiResource> {
        match self {
            Self::Quota => vec![kind::<ResourceQuota>()],
            Self::Limits => vec![kind::<ResourceQuota>(), kind::<LimitRange>()],
            Self::ServiceAccount => vec![kind::<ServiceAccount>()],
            Self::Policy => {
                vec![kind::<ValidatingAdmissionPolicy>(), kind::<ValidatingAdmissionPolicyBinding>()]
            }
            Self::Webhook => {
                vec![kind::<ValidatingWebhookConfiguration>(), kind::<MutatingWebhookConfiguration>()]
            }
        }
    }
}

fn kind<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_is_traced_to_the_objects_that_may_lift_it() {
        for (message, obstacle) in [
            (
                "basicreplicasets.catena.dev \"web\" is forbidden: ValidatingAdmissionPolicy 'still' with binding 'b' denied request: no",
                Some(Obstacle::Policy),
            ),
            ("admission webhook \"still.example.com\" denied the request: no", Some(Obstacle::Webhook)),
            (
                "Internal error occurred: failed calling webhook \"w.example.com\": failed to call webhook: Post …",
                Some(Obstacle::Webhook),
            ),
            (
                "pods \"web-x\" is forbidden: error looking up service account shop/robot: serviceaccount \"robot\" not found",
                Some(Obstacle::ServiceAccount),
            ),
            (
                "pods \"web-x\" is forbidden: minimum memory usage per Container is 256Mi, but request is 64Mi",
                Some(Obstacle::Limits),
            ),
            ("pods is forbidden: User \"x\" cannot create resource \"pods\"", None),
            ("Pod \"web-x\" is invalid: spec.containers: Required value", None),
        ] {
            assert_eq!(Obstacle::of(message), obstacle, "{message}");
        }
    }
}
