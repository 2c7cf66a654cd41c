//! Helpers of the end-to-end suite. Every wait has a time limit, after which it panics with the last state.
//!
//! The suite runs against the cluster of `KUBECONFIG`, on which the charts are installed; `cargo xtask test
//! --only e2e` brings one up. Tests run side by side, unless one changes a
//! controller that another needs ([`Cluster::changing`]), or wants the cluster alone ([`Cluster::alone`]). Those that take
//! more than a minute are in a module `long`, and begin first.

mod argo_rollouts;
mod audit;
pub mod chaos;
mod cheating_child;
mod claims;
mod cleanup;
mod clock;
mod cluster;
pub mod commands;
mod control_plane;
mod controllers;
mod effects;
mod eventually;
mod examples;
mod foreign_kinds;
pub mod generated;
mod go_module;
mod issuing_operator;
mod job_replicas;
mod kinds;
mod kubectl;
mod leftovers;
mod namespace;
mod needs;
mod objects;
mod open_kind;
mod orphans;
mod own_kind;
mod own_node;
mod own_process;
mod pace;
mod page;
mod paused;
mod plugin;
mod pods;
mod process;
mod protection;
mod reader;
mod recording;
mod refusals;
mod releases;
mod removals;
mod replicas;
mod route;
mod run;
pub mod schema;
mod system;
mod times;
pub mod twin;
mod undo;
mod work;

pub use argo_rollouts::ArgoRollouts;
pub use audit::{AuditLog, Request, Tally};
pub use chaos::ChaosProxy;
pub use cheating_child::{Cheat, CheatingChild};
pub use clock::Clocks;
pub use cluster::Cluster;
pub use control_plane::Component;
pub use controllers::{
    BACKUPS, BINDER, CHAIN, COMMANDED, CONTROLLERS, Controller, DEPLOYMENTS, REAPER, REPLICA_SETS, RUNNER,
    until_all_are_ready,
};
pub use effects::Effects;
pub use eventually::{COLLECTION_TIMEOUT, WAIT_TIMEOUT, eventually, eventually_every, yaml};
pub use examples::{child_example, example, example_program};
pub use foreign_kinds::ForeignKinds;
pub use go_module::GoModule;
pub use issuing_operator::IssuingOperator;
pub use job_replicas::JobReplicas;
pub use kinds::{ClusterWide, Namespaced};
pub use kubectl::{
    RequestUnderWay, kubectl, kubectl_apply, kubectl_create, kubectl_with_input, until_established,
};
pub use namespace::Namespace;
pub use needs::{Need, has};
pub use objects::{GROUP_VERSION, another_image, condition, deployment, image, is_true, replica_set};
pub use open_kind::open_kind;
pub use orphans::{inject_sidecar, orphan_child, orphan_pods, until_the_garbage_collector_knows_sets};
pub use own_kind::{FinalizerCleanup, OwnKind};
pub use own_node::OwnNode;
pub use own_process::OwnProcess;
pub use pace::Pace;
pub use page::{Block, Page, Typed, checkout};
pub use paused::Paused;
pub use plugin::{
    Said, catena, catena_as, catena_process, explained, succeeds, until_root_cause, until_says,
};
pub use pods::{alive, is_alive, is_ready, names, pod_template, pods_of, restarts, uids};
pub use process::{Frozen, Process};
pub use protection::{
    BACKUP_BY, backup_example, force_release, is_protected, protect, protecting, until_nothing_is_protected,
};
pub use reader::Reader;
pub use recording::{Recorded, Recording};
pub use refusals::{forbid_unless, permit};
pub use releases::{Release, helm, install_as, kinds_without_admission, shipped_template};
pub use removals::{delete_namespace, replace_definition};
pub use replicas::{Replicas, doubled};
pub use route::Route;
pub use run::output_of;
pub use undo::Undo;
pub use work::Work;

/// Builds a `BTreeMap` of strings.
#[macro_export]
macro_rules! texts {
    ($($key:expr => $value:expr),* $(,)?) => {
        std::collections::BTreeMap::from([$((String::from($key), String::from($value))),*])
    };
}
