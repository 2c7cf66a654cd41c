//! The way from processes of this machine to the API server, which can be cut for some of them.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result};
use kube::Config;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    select,
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use crate::Process;

/// A port of 127.0.0.1 that leads to the API server, until this is dropped.
pub struct Route {
    /// The port.
    pub port: u16,
    /// The processes that are cut off.
    cut: watch::Sender<BTreeSet<i32>>,
    task: JoinHandle<()>,
}

impl Route {
    /// Opens it.
    pub async fn open() -> Result<Self> {
        let server = Config::infer().await?.cluster_url;
        let to = server.authority().context("the API server has no address")?.to_string();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let cut = watch::Sender::default();
        let task = tokio::spawn(serve(listener, to, cut.clone()));
        Ok(Self { port, cut, task })
    }

    /// Cuts a process off: its connections stay open, but nothing arrives on either side, and what was sent is lost.
    pub fn cut(&self, process: &Process) {
        self.cut.send_modify(|cut| {
            cut.insert(process.pid);
        });
    }

    /// Ends all cuts. Connections that were cut are closed.
    pub fn heal(&self) {
        self.cut.send_modify(BTreeSet::clear);
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, to: String, cut: watch::Sender<BTreeSet<i32>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, peer)) = listener.accept().await {
        connections.spawn(connect(stream, peer.port(), to.clone(), cut.subscribe()));
        while connections.try_join_next().is_some() {}
    }
}

async fn connect(mut from: TcpStream, port: u16, to: String, mut cut: watch::Receiver<BTreeSet<i32>>) {
    let passed_on = async {
        let mut to = TcpStream::connect(to).await?;
        copy_bidirectional(&mut from, &mut to).await
    };
    select! {
        biased;
        is_cut = cut.wait_for(|cut| cut.iter().any(|pid| has_port(*pid, port))) => drop(is_cut),
        // A process that ends leaves its connections broken.
        _ = passed_on => return,
    }
    // Kept open, and not read.
    cut.wait_for(BTreeSet::is_empty).await.ok();
}

/// Whether a connection from this port of 127.0.0.1 belongs to a process.
fn has_port(pid: i32, port: u16) -> bool {
    let sockets = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    let Some(inode) = inode(&sockets, port) else { return false };
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let socket = format!("socket:[{inode}]");
    files.into_iter().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == Path::new(&socket)))
}

/// The inode of the socket with this local port; see `proc_net_tcp(5)`.
fn inode(sockets: &str, port: u16) -> Option<&str> {
    let suffix = format!(":{port:04X}");
    let mut lines = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let fields = lines.find(|fields| fields.get(1).is_some_and(|local| local.ends_with(&suffix)))?;
    fields.get(9).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_belongs_to_the_process_that_opened_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let port = stream.local_addr().unwrap().port();
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(has_port(own, port));
        assert!(!has_port(std::os::unix::process::parent_id().cast_signed(), port));
        drop(stream);
        assert!(!has_port(own, port));
    }
}
