//! The needs of a test that not every cluster fulfils.

use std::{io::Write, process::Command};

/// Something that only some clusters have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A file with the requests to the API server.
    AuditLog,
    /// Controllers whose process can be killed, frozen and measured: on this machine, or in the nodes of kind.
    Processes,
    /// Controllers that run on this machine, beside fake nodes.
    HostProcesses,
    /// Kubelets, on accessible nodes.
    RealNodes,
    /// Nodes that accept hundreds of pods at once, with any image.
    FakeNodes,
    /// An image of the plugin.
    PluginImage,
    /// No objects of others, which an example of ours could select by its label.
    NobodyElse,
    /// Go, for programs of the suite that are written in it.
    Go,
    /// No kinds of other projects except those that the test installs temporarily, because it would delete somebody's
    /// objects.
    NoKindsOfOthers,
}

impl Need {
    /// The reason why the cluster does not have it, if it does not.
    fn missing(self) -> Option<&'static str> {
        let on = std::env::var("CATENA_ON").unwrap_or_default();
        // Without a chosen cluster, nothing is missing: the claim of the cluster says what to do.
        let on_host = on != "current" && on != "kind";
        let has = |variable: &str| std::env::var_os(variable).is_some();
        let (is_there, otherwise) = match self {
            Self::AuditLog => (has("CATENA_AUDIT_LOG"), "the API server's audit log cannot be read here"),
            Self::Processes => (on != "current", "the controllers' processes cannot be reached here"),
            Self::HostProcesses => (on_host, "the controllers do not run on this machine, beside fake nodes"),
            Self::RealNodes => {
                (has("CATENA_KIND"), "there are no real nodes here; `cargo xtask e2e --on kind` has them")
            }
            Self::FakeNodes => (
                on_host,
                "the nodes are real: hundreds of pods are too many for them, and they do not have every image",
            ),
            Self::PluginImage => (on != "current", "the cluster may not have an image of the plugin"),
            Self::NobodyElse => {
                (on != "current", "objects that are somebody's may have the labels of the examples")
            }
            Self::Go => (
                Command::new("go").arg("version").output().is_ok_and(|go| go.status.success()),
                "Go is not installed, and a program of the test is written in it",
            ),
            Self::NoKindsOfOthers => {
                (!has("CATENA_KINDS_OF_OTHERS"), "the cluster has kinds of other projects, which must stay")
            }
        };
        (!is_there).then_some(otherwise)
    }
}

/// Whether the cluster has everything that a test needs. If not, reports that the test is left out, and why; `needs!`
/// does both.
#[must_use]
pub fn has(needs: &[Need]) -> bool {
    let Some(why) = needs.iter().find_map(|need| need.missing()) else { return true };
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // Bypasses the test program's capture, which hides the output of tests that pass.
    writeln!(std::io::stderr(), "left out: {test}: {why}").ok();
    false
}

/// Leaves a test out, and reports that, if the cluster does not have everything that it needs.
#[macro_export]
macro_rules! needs {
    ($($need:ident),+ $(,)?) => {
        if !$crate::has(&[$($crate::Need::$need),+]) {
            return Ok(());
        }
    };
}
