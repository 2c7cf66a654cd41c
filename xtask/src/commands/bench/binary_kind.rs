//! The binaries that are measured.

use std::path::PathBuf;

use anyhow::Result;
use local_cluster::Interrupt;

use crate::{
    cargo,
    images::binaries::Binaries,
    workspace::{self, Profile},
};

/// The binaries of the controllers.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub enum BinaryKind {
    /// As `cargo build --release` makes them
    #[default]
    Release,
    /// Static and optimized as a whole, as in the images; building them takes minutes longer
    Image,
}

impl BinaryKind {
    /// Builds them, and returns their directory.
    pub async fn build(self, interrupt: &Interrupt) -> Result<PathBuf> {
        match self {
            Self::Release => {
                cargo::run(&["build", "--release"], interrupt).await?;
                workspace::binaries(Profile::Release)
            }
            Self::Image => Ok(Binaries::build(&[], interrupt).await?.directory),
        }
    }
}
