//! The programs of a control plane, and their prerequisites.

pub mod addresses;
pub mod api_server;
pub mod certificates;
pub mod component;
pub mod controller_manager;
pub mod credentials;
pub mod etcd;
pub mod fake_nodes;
pub mod keeper;
pub mod kwok;
pub mod readiness;
pub mod scheduler;
