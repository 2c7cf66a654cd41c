//! Kubernetes clusters on this machine, for development and tests.
//!
//! - [`LocalCluster`]: a real control plane as local processes, fake nodes played by kwok, and one node whose pods are processes of
//!   this machine.
//! - [`KindCluster`]: real kubelets and real images, on Docker.
//!
//! Both are reached by an [`Access`]. Long operations are shown by a [`Step`] and ended by an [`Interrupt`]. A program
//! that brings up a [`LocalCluster`] also runs inside it: its `main` calls [`play_role`] first.

mod access;
#[cfg(test)]
mod again;
mod backoff;
mod cache;
mod control_plane;
mod explain;
pub mod files;
mod host_runner;
mod kind;
mod kubeconfig;
mod lifecycle;
mod local_cluster;
mod own_program;
mod programs;
mod progress;
mod state;
mod toolchain;

pub use access::{Access, forget_other_clusters};
pub use cache::directory as cache_directory;
pub use control_plane::keeper::Kept;
pub use explain::explain;
pub use host_runner::{NODE_NAME, PID_ANNOTATION};
pub use kind::{KindCluster, problem as kind_problem};
pub use kubeconfig::{client, client_as, write as write_kubeconfig};
pub use lifecycle::{bring_up::Wanted, supervision::Health};
pub use local_cluster::LocalCluster;
pub use own_program::{file as own_file, play_role};
pub use programs::{Interrupt, output};
pub use progress::{Step, seconds};
pub use toolchain::{Tool, Toolchain};
