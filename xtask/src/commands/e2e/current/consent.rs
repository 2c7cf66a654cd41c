//! Asks for consent before anything is changed, and names the cluster and the changes.

use std::{
    fmt,
    io::{self, BufRead, IsTerminal, Write},
    thread,
};

use anyhow::{Result, bail};
use local_cluster::Interrupt;
use tokio::sync::oneshot;

use crate::charts::NAMESPACE;

/// The planned changes.
pub struct Plan<'a> {
    pub context: &'a str,
    pub server: &'a str,
    /// Those that exist already, and stay untouched.
    pub kinds_of_others: &'a [String],
    pub keep: bool,
}

impl fmt::Display for Plan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { context, server, kinds_of_others, keep } = self;
        writeln!(f, "The suite will run on the cluster of the current kubeconfig context:")?;
        writeln!(f, "  context  {context}")?;
        writeln!(f, "  server   {server}")?;
        writeln!(f, "It will, as the user of that context:")?;
        writeln!(
            f,
            "  - install Catena's charts and CustomResourceDefinitions, in the namespace {NAMESPACE};"
        )?;
        writeln!(f, "  - upgrade, restart and uninstall them, and take rights and kinds away from them;")?;
        writeln!(f, "  - create namespaces e2e-*, hundreds of pods in them, and delete them;")?;
        if kinds_of_others.is_empty() {
            writeln!(
                f,
                "  - install CustomResourceDefinitions of other projects (e2e/crds) and delete them;"
            )?;
        } else {
            let kinds = kinds_of_others.join(", ");
            writeln!(
                f,
                "  - leave out the tests with kinds of other projects, because the cluster has {kinds};"
            )?;
        }
        if *keep {
            writeln!(f, "  - leave the charts and what failed tests left (--keep).")?;
        } else {
            writeln!(f, "  - in the end take away all of this that was not there before.")?;
        }
        writeln!(
            f,
            "When a test fails, it keeps pods, ConfigMaps, events and logs of all namespaces in a folder here."
        )
    }
}

/// Asks, unless the answer was given in advance.
pub async fn ask(yes: bool, interrupt: &Interrupt) -> Result<()> {
    let answer = async || {
        let (tell, told) = oneshot::channel();
        // A separate thread, which is abandoned if a signal comes first.
        thread::spawn(move || tell.send(read()));
        interrupt.or(async { Ok(told.await??) }).await
    };
    decide(yes, io::stdin().is_terminal(), answer).await
}

fn read() -> io::Result<String> {
    print!("Continue? [y/N] ");
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer)
}

async fn decide(yes: bool, is_terminal: bool, answer: impl AsyncFnOnce() -> Result<String>) -> Result<()> {
    if yes {
        return Ok(());
    }
    if !is_terminal {
        bail!(
            "nothing was done: nobody can be asked without a terminal; add --yes if this is the cluster that you mean, \
             or change it with `kubectl config use-context`"
        );
    }
    if !matches!(answer().await?.trim(), "y" | "Y" | "yes") {
        bail!("nothing was done: the answer was not y");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn unasked() -> Result<String> {
        bail!("it was asked")
    }

    #[tokio::test]
    async fn without_a_terminal_nothing_is_done_unless_it_was_agreed_in_advance() {
        let said = decide(false, false, unasked).await.unwrap_err().to_string();
        assert!(said.contains("nothing was done") && said.contains("--yes"), "{said}");
        decide(true, false, unasked).await.unwrap();
        decide(true, true, unasked).await.unwrap();
    }

    #[tokio::test]
    async fn only_a_yes_is_one() {
        for (answer, agrees) in [("y\n", true), ("yes\n", true), ("\n", false), ("n\n", false), ("", false)] {
            let agreed = decide(false, true, async || Ok(answer.into())).await;
            assert_eq!(agreed.is_ok(), agrees, "{answer:?}");
        }
    }

    #[test]
    fn the_plan_names_the_cluster_and_what_is_done_to_it() {
        let plan =
            Plan { context: "shop", server: "https://shop.example.com", kinds_of_others: &[], keep: false };
        let text = plan.to_string();
        for part in ["shop", "https://shop.example.com", "e2e-*", "take away"] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
        let others = ["clusters.postgresql.cnpg.io".to_owned()];
        let text = Plan { keep: true, kinds_of_others: &others, ..plan }.to_string();
        assert!(
            text.contains("--keep") && text.contains("leave out the tests") && text.contains(&others[0]),
            "{text}"
        );
    }
}
