//! The program that the end-to-end suite runs in pods of real nodes, where nothing can be pulled.
//!
//! Without arguments it serves: it accepts connections on `PORT` (8080), from `LISTEN_AFTER` seconds (0) after its start,
//! until SIGTERM. `workload store FILE` writes the text of the variable `CONTENT` to a file and ends.
//! `workload fail` ends with an error.

use std::{
    env,
    fs::{self, File},
    io::Write,
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tokio::{
    io::AsyncWriteExt,
    net::TcpListener,
    select,
    signal::unix::{SignalKind, signal},
    time::sleep,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            // As the first process of a container, it would ignore SIGTERM without a handler.
            let mut terminate = signal(SignalKind::terminate())?;
            select! { served = serve() => served, _ = terminate.recv() => Ok(()) }
        }
        ["store", file] => store(Path::new(file)),
        ["fail"] => bail!("this was asked for"),
        _ => bail!("use: workload | workload store FILE | workload fail"),
    }
}

async fn serve() -> Result<()> {
    let number = |name: &str, default: u16| {
        env::var(name)
            .map_or(Ok(default), |text| text.parse())
            .with_context(|| format!("{name} is no number"))
    };
    let (port, after) = (number("PORT", 8080)?, number("LISTEN_AFTER", 0)?);
    sleep(Duration::from_secs(after.into())).await;
    let listener =
        TcpListener::bind(("0.0.0.0", port)).await.with_context(|| format!("could not listen on {port}"))?;
    println!("serving on {port}");
    loop {
        let (mut connection, _) = listener.accept().await?;
        // A probe closes the connection without sending anything.
        connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await.ok();
    }
}

/// Stores durably, because a reported backup must exist.
fn store(path: &Path) -> Result<()> {
    let content = env::var("CONTENT").context("CONTENT is not set")?;
    let unfinished = path.with_extension("unfinished");
    let mut file =
        File::create(&unfinished).with_context(|| format!("could not create {}", unfinished.display()))?;
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, path).with_context(|| format!("could not write {}", path.display()))?;
    println!("stored {} bytes in {}", content.len(), path.display());
    Ok(())
}
