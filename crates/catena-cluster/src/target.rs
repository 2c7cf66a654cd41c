//! The object of a command line, in the forms of kubectl: `KIND/NAME`, `KIND NAME`, or the name of a BasicDeployment.

use anyhow::{Result, bail, ensure};
use clap::Args;
use operator_watch::ObjectId;

/// The kind of a name alone.
pub const BASIC_DEPLOYMENTS: &str = "basicdeployments.catena.dev";

/// An object on the command line.
#[derive(Args, Clone, Debug)]
pub struct ObjectArgument {
    /// KIND/NAME or KIND NAME; a NAME alone is the name of a BasicDeployment
    #[arg(value_name = "OBJECT", required = true, num_args = 1..=2)]
    object: Vec<String>,
}

/// A kind in the words of the user, and a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The kind, in any form that kubectl accepts.
    pub kind: String,
    /// The name.
    pub name: String,
}

impl ObjectArgument {
    /// The object that the words name.
    pub fn target(&self) -> Result<Target> {
        let words: Vec<&str> = self.object.iter().map(String::as_str).collect();
        Target::of(&words)
    }
}

impl Target {
    fn of(words: &[&str]) -> Result<Self> {
        let (kind, name) = match words {
            [word] => word.split_once('/').unwrap_or((BASIC_DEPLOYMENTS, word)),
            [kind, name] if !kind.contains('/') && !name.contains('/') => (*kind, *name),
            _ => bail!("{:?} is not an object: write KIND/NAME or KIND NAME", words.join(" ")),
        };
        ensure!(
            !kind.is_empty() && !name.is_empty() && !name.contains('/'),
            "{:?} is not an object: write KIND/NAME, for example basicdeployment/web",
            words.join(" ")
        );
        ensure!(ObjectId::is_name(name), "{name:?} is not an object name: correct it");
        Ok(Self { kind: kind.to_owned(), name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_named_as_in_kubectl() {
        let target = |kind: &str| Target { kind: kind.into(), name: "web".into() };
        assert_eq!(Target::of(&["web"]).unwrap(), target(BASIC_DEPLOYMENTS));
        assert_eq!(Target::of(&["brs/web"]).unwrap(), target("brs"));
        assert_eq!(Target::of(&["pods", "web"]).unwrap(), target("pods"));
        for wrong in [&["brs/"][..], &["/web"], &["a/b/c"], &["a/b", "c"]] {
            let error = Target::of(wrong).unwrap_err().to_string();
            assert!(error.contains("KIND/NAME"), "{error}");
        }
    }

    #[test]
    fn a_name_that_would_be_another_request_is_refused() {
        for wrong in [
            &["pods/?watch=true"][..],
            &["pods", "?watch=true"],
            &["?watch=true"],
            &["pods/.."],
            &["pods/a b"],
        ] {
            let error = Target::of(wrong).unwrap_err().to_string();
            assert!(error.contains("is not an object name"), "{error}");
        }
    }
}
