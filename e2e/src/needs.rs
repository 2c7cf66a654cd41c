//! The needs of a test that not every cluster fulfils.

use std::io::Write;

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
    /// Go, for the library that computes kstatus.
    Go,
    /// No kinds of other projects except those that the test installs temporarily, because it would delete somebody's
    /// objects.
    NoKindsOfOthers,
}

impl Need {
    /// The reason why the cluster does not have it, if it does not.
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
            Self::PluginImage if is_on("current") => Some("the cluster may not have an image of the plugin"),
            Self::NobodyElse if is_on("current") => {
                Some("objects that are somebody's may have the labels of the examples")
            }
            Self::Go
                if !std::process::Command::new("go")
                    .arg("version")
                    .output()
                    .is_ok_and(|go| go.status.success()) =>
            {
                Some("Go is not installed, and the library that computes kstatus is written in it")
            }
            Self::NoKindsOfOthers if std::env::var_os("CATENA_KINDS_OF_OTHERS").is_some() => {
                Some("the cluster has kinds of other projects, which must stay")
            }
            _ => None,
        }
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
