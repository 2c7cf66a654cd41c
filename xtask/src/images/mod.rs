//! Container images of the controllers: one static binary each, on nothing.

pub mod archive;
pub mod binaries;

/// What the end-to-end tests and the demo run where nothing can be pulled.
pub const WORKLOAD: &str = "workload";

/// The names of an image of this checkout. The workload has two, so that there are two versions to change between.
pub fn references(program: &str) -> Vec<String> {
    let mut references = vec![reference(program)];
    if program == WORKLOAD {
        references.push(format!("catena/{program}:another"));
    }
    references
}

/// The image of a controller of this checkout.
pub fn reference(controller: &str) -> String {
    format!("catena/{controller}:{}", env!("CARGO_PKG_VERSION"))
}
