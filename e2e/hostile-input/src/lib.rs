//! Every input of the controllers that somebody else wrote, read from arbitrary bytes.
//!
//! Each target panics if the result contradicts an assumption of the controllers, or took longer or more
//! memory than any input may. The tests run them on the inputs under `corpus/` and many variations of these;
//! cargo-fuzz searches for new ones, with a nightly toolchain, from this directory:
//!
//! ```sh
//! cargo +nightly fuzz run settings corpus/settings -- -dict=words.dict -timeout=20 -max_len=8192
//! ```
//!
//! A stable toolchain searches as well, if not as cleverly, by changing the inputs of the corpus in any way:
//!
//! ```sh
//! TARGET=templates SECONDS=600 cargo test --release -p hostile-input searches -- --ignored --nocapture
//! ```

mod annotations;
mod bounds;
mod expressions;
mod objects;
mod parameters;
mod parts;
mod reference;
mod sent;
mod settings;
mod templates;
#[cfg(test)]
mod tests;
mod watched;

/// A reader of bytes.
pub struct Target {
    /// The name of its corpus, and of its program in `fuzz/`.
    pub name: &'static str,
    read: fn(&[u8]),
}

impl Target {
    /// Reads an input.
    ///
    /// # Panics
    /// If it is read incorrectly, or not within bounds.
    pub fn read(&self, input: &[u8]) {
        bounds::keep(self.name, || (self.read)(input));
    }
}

/// Settings of every controller, and their own description of them.
pub const SETTINGS: Target = Target { name: "settings", read: settings::read };
/// The templates that the charts ship, with any parameters.
pub const PARAMETERS: Target = Target { name: "parameters", read: parameters::read };
/// Any template, with any parameters.
pub const TEMPLATES: Target = Target { name: "templates", read: templates::read };
/// Any expression over any object.
pub const EXPRESSIONS: Target = Target { name: "expressions", read: expressions::read };
/// Annotations that controllers read back.
pub const ANNOTATIONS: Target = Target { name: "annotations", read: annotations::read };
/// Objects that controllers watch, as they are kept.
pub const OBJECTS: Target = Target { name: "objects", read: objects::read };
/// Bodies that the API server reads as YAML.
pub const SENT: Target = Target { name: "sent", read: sent::read };
/// Pages of lists and lines of watches.
pub const WATCHED: Target = Target { name: "watched", read: watched::read };

/// All of them.
pub const TARGETS: [Target; 8] =
    [SETTINGS, PARAMETERS, TEMPLATES, EXPRESSIONS, ANNOTATIONS, OBJECTS, SENT, WATCHED];
