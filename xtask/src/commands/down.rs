//! `cargo xtask down`

use anyhow::Result;

use crate::cluster::{home::Home, take_down::take_down};

/// Takes one cluster down, or all.
pub fn run(name: &str, all: bool) -> Result<()> {
    let homes = if all { Home::existing()? } else { vec![Home::of(name)?] };
    if homes.is_empty() {
        println!("there is no local cluster");
    }
    for home in homes {
        if !take_down(&home)? {
            println!("there is no cluster {:?}", home.name());
        }
    }
    Ok(())
}
