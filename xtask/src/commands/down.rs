//! `cargo xtask down`

use std::path::Path;

use anyhow::Result;

use crate::{
    cluster::{home::Home, take_down::take_down},
    kind::Kind,
};

/// Takes one cluster down, or all: those of local processes, and those on kind.
pub fn run(name: &str, all: bool) -> Result<()> {
    let (homes, kinds) = if all {
        (Home::existing()?, Kind::known()?)
    } else {
        (vec![Home::of(name)?], vec![Kind::of_demo(name)?])
    };
    let mut gone = Vec::new();
    for home in homes {
        if take_down(&home)? {
            gone.push(home.kubeconfig());
        }
    }
    for kind in kinds.iter().filter(|kind| kind.is_known()) {
        kind.delete()?;
        gone.push(kind.kubeconfig());
    }
    if gone.is_empty() {
        println!("there is no cluster{}", if all { String::new() } else { format!(" {name:?}") });
    }
    if let Some(current) = std::env::var_os("KUBECONFIG")
        && gone.iter().any(|gone| gone == Path::new(&current))
    {
        println!("its kubeconfig is gone, too: `unset KUBECONFIG`");
    }
    Ok(())
}
