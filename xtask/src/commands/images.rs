//! `cargo xtask images`: an image of each program that charts run, for Docker.

use std::{fs, process::Command};

use anyhow::{Context, Result};
use local_cluster::{Interrupt, Step, files};

use crate::{
    images::{
        archive::{self, Image},
        binaries, chosen, reference,
    },
    sbom, workspace,
};

/// The options of the images.
#[derive(clap::Args)]
pub struct Options {
    /// Build only this program's image; can be given several times
    #[arg(long, value_name = "PROGRAM")]
    only: Vec<String>,
    /// Only write the archives to target/images, and load none into Docker
    #[arg(long)]
    no_load: bool,
}

/// Builds the images, and loads them into Docker.
pub async fn run(options: &Options) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let controllers = chosen(&options.only)?;
    for archive in write(&controllers, &interrupt).await? {
        if !options.no_load {
            load(&archive, &interrupt).await?;
        }
    }
    Ok(())
}

/// Builds the images as archives, and returns their paths.
pub async fn write(controllers: &[String], interrupt: &Interrupt) -> Result<Vec<std::path::PathBuf>> {
    let (target, architecture) = binaries::target()?;
    let binaries = binaries::build(controllers, interrupt).await?;
    let directory = workspace::target()?.join("images");
    files::create_directory(&directory)?;
    let mut archives = Vec::new();
    for controller in controllers {
        let step = Step::start(reference(controller));
        let path = binaries.join(controller);
        let binary = fs::read(&path).with_context(|| format!("could not read {}", path.display()))?;
        let bill_of_materials = sbom::bill_of(controller, target)?;
        let archive = directory.join(format!("{controller}.tar"));
        let image = Image {
            program: controller,
            binary: &binary,
            bill_of_materials: &bill_of_materials,
            architecture,
        };
        let (id, size) = archive::write(&image, &archive)?;
        #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
        step.done(format!("{:.1} MB, {id}", size as f64 / 1e6));
        archives.push(archive);
    }
    Ok(archives)
}

/// Loads an archive into Docker.
async fn load(archive: &std::path::Path, interrupt: &Interrupt) -> Result<()> {
    interrupt.run(Command::new("docker").args(["load", "--quiet", "--input"]).arg(archive)).await.context(
        "Docker did not take the image: is it installed and running? `docker info` tells; the archives in \
         target/images can be loaded elsewhere (`--no-load` stops before this)",
    )
}
