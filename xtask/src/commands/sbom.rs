//! `cargo xtask sbom`: a bill of materials for each program that ships.

use anyhow::Result;
use local_cluster::files;

use crate::{
    images::{self, binaries},
    sbom, workspace,
};

/// What is listed.
#[derive(clap::Args)]
pub struct Options {
    /// List only this program; can be given several times
    #[arg(long, value_name = "PROGRAM")]
    only: Vec<String>,
    /// The target that it is built for; that of the images by default
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
}

/// Writes target/sbom/PROGRAM.cdx.json.
pub fn run(options: &Options) -> Result<()> {
    let programs = images::chosen(&options.only)?;
    let target = match &options.target {
        Some(target) => target,
        None => binaries::target()?.0,
    };
    let directory = workspace::target()?.join("sbom");
    files::create_directory(&directory)?;
    for program in &programs {
        let path = directory.join(format!("{program}.cdx.json"));
        files::write(&path, sbom::bill_of(program, target)?)?;
        println!("{}", path.display());
    }
    Ok(())
}
