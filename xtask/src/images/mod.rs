//! Container images of the controllers: one static binary each, on nothing.

pub mod archive;
pub mod binaries;

/// What the end-to-end tests and the demo run where nothing can be pulled.
pub const WORKLOAD: &str = "workload";

/// The image of a controller of this checkout.
pub fn reference(controller: &str) -> String {
    format!("catena/{controller}:{}", env!("CARGO_PKG_VERSION"))
}
