//! A wall clock of controllers that can be set while they run. The API server's clock stays.

use std::{fs, path::PathBuf};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{Controller, checkout, run::output_of};

/// The source of the library.
const SOURCE: &str = "e2e/src/clock/shift.c";

/// The clocks of controllers, until this is dropped.
pub struct Clocks {
    /// Holds the library, and a file for each controller.
    directory: PathBuf,
}

impl Clocks {
    /// Builds the library by the C compiler, which Rust needs for linking, too. The test has to say that it
    /// `needs!(HostProcesses)`.
    pub async fn make() -> Result<Self> {
        let directory = std::env::temp_dir().join(format!("catena-clocks-{}", rand::random::<u32>()));
        fs::create_dir(&directory)?;
        let clocks = Self { directory };
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o"]).args([clocks.library(), checkout().join(SOURCE)]);
        output_of(cc, "").await?;
        Ok(clocks)
    }

    /// Values of a controller's chart with which its processes have this clock.
    pub fn given_to(&self, controller: Controller, mut values: Value) -> Result<Value> {
        self.set(controller, 0)?;
        values["env"] = json!([
            {"name": "LD_PRELOAD", "value": self.library()},
            {"name": "CATENA_CLOCK", "value": self.offset(controller)},
        ]);
        Ok(values)
    }

    /// Sets a controller's clock to this number of seconds after the real time.
    pub fn set(&self, controller: Controller, seconds: i64) -> Result<()> {
        // Replaced at once, so that no process reads an empty file.
        let (file, next) = (self.offset(controller), self.directory.join("next"));
        fs::write(&next, seconds.to_string())?;
        Ok(fs::rename(next, file)?)
    }

    fn library(&self) -> PathBuf {
        self.directory.join("shift.so")
    }

    fn offset(&self, controller: Controller) -> PathBuf {
        self.directory.join(controller.name())
    }
}

impl Drop for Clocks {
    fn drop(&mut self) {
        // Processes that are still running have the real time from now on.
        drop(fs::remove_dir_all(&self.directory));
    }
}
