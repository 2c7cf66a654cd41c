//! `cargo xtask down`

use std::path::Path;

use anyhow::Result;

use crate::{
    cluster::{home::Home, take_down::take_down},
    kind::Kind,
};

/// Takes one cluster down, the demo's on kind if there is no local one of that name; or all.
pub fn run(name: &str, all: bool) -> Result<()> {
    let (homes, kinds) = match Home::of(name)? {
        _ if all => (Home::existing()?, Kind::known()?),
        home if home.exists() => (vec![home], Vec::new()),
        _ => (Vec::new(), vec![Kind::called(name)?]),
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
