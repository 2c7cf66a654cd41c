//! One file per command.

pub mod bench;
pub mod chaos;
pub mod charts;
pub mod crds;
pub mod demo;
pub mod down;
pub mod e2e;
pub mod images;
pub mod kubeconfig;
pub mod logs;
pub mod model;
pub mod pass_on;
pub mod sbom;
pub mod status;
pub mod test;
pub mod toolchain;
pub mod up;
