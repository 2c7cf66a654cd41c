use k8s_openapi::api::core::v1::ObjectReference;

use crate::Failure;

/// Takes what watches report beside their objects, such as for metrics and Events. The log has it anyway.
pub trait Report: Send + Sync + 'static {
    /// A request of a watch of this kind has failed.
    fn failed(&self, kind: &str);
    /// So many objects of this kind cannot be read now.
    fn unreadable(&self, kind: &str, count: usize);
    /// An object cannot be read because of this mistake: called again and again while that lasts.
    fn is_unreadable(&self, object: &ObjectReference, mistake: &str, failure: &Failure);
    /// An object no longer has this mistake, or is gone.
    fn is_mended(&self, object: &ObjectReference, mistake: &str);
}

/// Reports nothing.
impl Report for () {
    fn failed(&self, _: &str) {}
    fn unreadable(&self, _: &str, _: usize) {}
    fn is_unreadable(&self, _: &ObjectReference, _: &str, _: &Failure) {}
    fn is_mended(&self, _: &ObjectReference, _: &str) {}
}
