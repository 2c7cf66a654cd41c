//! What a test needs that not every cluster has.

use std::io::Write;

/// Something that only some clusters have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// What the API server was asked, in a file.
    AuditLog,
    /// Controllers whose process can be killed, frozen and measured: on this machine, or in the nodes of kind.
    Processes,
    /// Controllers that run on this machine, beside fake nodes.
    HostProcesses,
    /// Kubelets, on nodes that can be looked into.
    RealNodes,
    /// Nodes that take hundreds of pods in no time, of any image.
    FakeNodes,
    /// Nobody else's objects, which an example of ours could select by its label.
    NobodyElse,
    /// No kinds of other projects but those that the test installs for a time: it would take somebody's objects away.
    NoKindsOfOthers,
}

impl Need {
    /// Why the cluster does not have it, if so.
    fn missing(self) -> Option<&'static str> {
        let is_on = |cluster: &str| std::env::var("CATENA_ON").is_ok_and(|on| on == cluster);
        match self {
            Self::AuditLog if std::env::var_os("CATENA_AUDIT_LOG").is_none() => {
                Some("the API server's audit log cannot be read here")
            }
            Self::Processes if is_on("current") => Some("the controllers' processes cannot be reached here"),
            Self::HostProcesses if is_on("current") || is_on("kind") => {
                Some("the controllers do not run on this machine, beside fake nodes")
            }
            Self::RealNodes if std::env::var_os("CATENA_KIND").is_none() => {
                Some("there are no real nodes here; `cargo xtask e2e --on kind` has them")
            }
            Self::FakeNodes if is_on("current") || is_on("kind") => Some(
                "the nodes are real: hundreds of pods are too many for them, and they do not have every image",
            ),
            Self::NobodyElse if is_on("current") => {
                Some("objects that are somebody's may have the labels of the examples")
            }
            Self::NoKindsOfOthers if std::env::var_os("CATENA_KINDS_OF_OTHERS").is_some() => {
                Some("the cluster has kinds of other projects, which must stay")
            }
            _ => None,
        }
    }
}

/// Whether the cluster has all that a test needs. When not, says that the test is left out and why; `needs!` does both.
#[must_use]
pub fn has(needs: &[Need]) -> bool {
    let Some(why) = needs.iter().find_map(|need| need.missing()) else { return true };
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // Past the test program's own capture, which hides what a test prints that does not fail.
    writeln!(std::io::stderr(), "left out: {test}: {why}").ok();
    false
}

/// Leaves a test out, and says so, where the cluster has not what it needs.
#[macro_export]
macro_rules! needs {
    ($($need:ident),+ $(,)?) => {
        if !$crate::has(&[$($crate::Need::$need),+]) {
            return Ok(());
        }
    };
}
