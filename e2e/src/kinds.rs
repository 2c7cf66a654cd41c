//! The bounds of helpers that take any kind of objects.

use std::fmt::Debug;

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};

/// A kind of objects.
pub trait Kind: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned {}

impl<K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned> Kind for K {}

/// A kind of objects in namespaces.
pub trait Namespaced: Kind + Resource<DynamicType = (), Scope = NamespaceResourceScope> {}

impl<K: Kind + Resource<DynamicType = (), Scope = NamespaceResourceScope>> Namespaced for K {}

/// A kind of cluster-wide objects.
pub trait ClusterWide: Kind + Resource<DynamicType = (), Scope = ClusterResourceScope> {}

impl<K: Kind + Resource<DynamicType = (), Scope = ClusterResourceScope>> ClusterWide for K {}
