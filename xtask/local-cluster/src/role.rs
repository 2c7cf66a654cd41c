//! The roles of this program inside a cluster that it brought up, recognised by its arguments.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};

use crate::{
    explain::explain,
    home::Home,
    lifecycle::supervisor::supervise,
    own_program::{BECOME_CHILD, SUPERVISE, become_child},
};

/// A role for which this program was started again.
#[derive(Debug, PartialEq, Eq)]
pub struct Role(Part);

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Supervisor { cluster: String },
    Child { parent: i32, program: PathBuf, arguments: Vec<OsString> },
}

impl Role {
    /// The role in the arguments of this process, if there is one. Call it at the very start of `main`, and play the
    /// role on the main thread.
    #[must_use]
    pub fn given() -> Option<Self> {
        Self::read(std::env::args_os().skip(1))
    }

    fn read(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let part = match arguments.next()?.to_str()? {
            SUPERVISE => Part::Supervisor { cluster: arguments.next()?.into_string().ok()? },
            BECOME_CHILD => Part::Child {
                parent: arguments.next()?.to_str()?.parse().ok()?,
                program: arguments.next()?.into(),
                arguments: arguments.collect(),
            },
            _ => return None,
        };
        Some(Self(part))
    }

    /// Plays it to the end.
    #[must_use]
    pub fn play(self) -> ExitCode {
        match self.0.play() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {}", explain(&error));
                ExitCode::FAILURE
            }
        }
    }
}

impl Part {
    fn play(self) -> Result<()> {
        match self {
            Self::Supervisor { cluster } => {
                // One thread: children get a death signal when the thread that started them ends.
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .context("could not start the async runtime")?;
                runtime.block_on(supervise(Home::of(&cluster)?))
            }
            Self::Child { parent, program, arguments } => {
                become_child(parent, &program, &arguments).map(|never| match never {})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, process::Command};

    use super::*;
    use crate::own_program::{child, supervisor};

    fn role_of(command: &Command) -> Option<Role> {
        Role::read(command.get_args().map(OsString::from))
    }

    #[test]
    fn a_program_that_is_started_again_finds_its_role_in_its_arguments() {
        let copy = Path::new("/cluster/supervisor");
        let supervisor = role_of(&supervisor(copy, "default"));
        assert_eq!(supervisor, Some(Role(Part::Supervisor { cluster: "default".into() })));
        let arguments = ["--name=local", "--", "--help"];
        let child = role_of(&child(copy, Path::new("/tools/etcd"), &arguments.map(String::from)));
        let expected = Part::Child {
            parent: std::process::id().cast_signed(),
            program: "/tools/etcd".into(),
            arguments: arguments.map(OsString::from).into(),
        };
        assert_eq!(child, Some(Role(expected)));
    }

    #[test]
    fn a_program_that_a_person_starts_has_no_role() {
        for line in [&[][..], &["up"], &["--help"], &["supervise", "default"]] {
            assert_eq!(Role::read(line.iter().map(OsString::from)), None, "{line:?}");
        }
    }
}
