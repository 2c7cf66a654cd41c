//! Container images of the controllers: one static binary each, on nothing.

pub mod archive;
pub mod binaries;

/// The program of the end-to-end tests and the demo if nothing can be pulled.
pub const WORKLOAD: &str = "workload";

/// The names of an image of this checkout. The workload has two, for changes between two versions.
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
