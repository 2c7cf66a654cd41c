//! A local cluster: real control plane, fake nodes, and one node whose pods are local processes.

pub mod addresses;
pub mod api_server;
pub mod bring_up;
pub mod certificates;
pub mod child;
pub mod component;
pub mod controller_manager;
pub mod etcd;
pub mod fake_nodes;
pub mod home;
pub mod journal;
pub mod keeper;
pub mod kubeconfig;
pub mod kwok;
pub mod processes;
pub mod readiness;
pub mod scheduler;
pub mod state;
pub mod supervisor;
pub mod take_down;
