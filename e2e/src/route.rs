//! The way from processes of this machine to the API server, which can be cut for some of them.

use std::{collections::BTreeSet, fs, net::SocketAddr, path::Path};

use anyhow::{Context, Result};
use kube::Config;
use serde_json::Value;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    select,
    sync::watch,
    task::JoinSet,
};

use crate::{Cluster, Controller, Process, Release};

/// A port of 127.0.0.1 that leads to the API server, until this is dropped.
pub struct Route {
    /// The port.
    pub port: u16,
    /// The processes that are cut off.
    cut: watch::Sender<BTreeSet<i32>>,
    _task: JoinSet<()>,
}

impl Route {
    /// Opens it.
    pub async fn open() -> Result<Self> {
        let server = Config::infer().await?.cluster_url;
        let to = server.authority().context("the API server has no address")?.to_string();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let cut = watch::Sender::default();
        let task = JoinSet::from_iter([serve(listener, to, cut.clone())]);
        Ok(Self { port, cut, _task: task })
    }

    /// Upgrades a controller's release so that its pods take this way; see [`Release::upgrade`].
    pub async fn upgrade(
        &self,
        cluster: &Cluster,
        controller: Controller,
        values: &Value,
    ) -> Result<Release> {
        let chart = std::env::temp_dir().join(format!("catena-{}-{}", self.port, controller.name()));
        copy(&controller.chart()?, &chart)?;
        let file = chart.join("templates/deployment.yaml");
        let variables = "          env:\n";
        let more = format!("            - {{name: KUBERNETES_SERVICE_PORT, value: \"{}\"}}\n", self.port);
        fs::write(&file, fs::read_to_string(&file)?.replacen(variables, &format!("{variables}{more}"), 1))?;
        let release = Release::of_chart(cluster, controller, &chart, values).await;
        fs::remove_dir_all(&chart)?;
        release
    }

    /// Cuts a process off: its connections stay open, but nothing arrives on either side, and sent data is lost.
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

async fn serve(listener: TcpListener, to: String, cut: watch::Sender<BTreeSet<i32>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(connect(stream, to.clone(), cut.subscribe()));
        while connections.try_join_next().is_some() {}
    }
}

async fn connect(mut from: TcpStream, to: String, mut cut: watch::Receiver<BTreeSet<i32>>) {
    let (Ok(peer), Ok(local)) = (from.peer_addr(), from.local_addr()) else { return };
    let passed_on = async {
        let mut to = TcpStream::connect(to).await?;
        copy_bidirectional(&mut from, &mut to).await
    };
    select! {
        biased;
        is_cut = cut.wait_for(|cut| cut.iter().any(|pid| is_of(*pid, peer, local))) => drop(is_cut),
        // A process that ends leaves its connections broken.
        _ = passed_on => return,
    }
    // Kept open, and not read.
    cut.wait_for(BTreeSet::is_empty).await.ok();
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Whether a process has the connection with these ports at its end and at the other.
fn is_of(pid: i32, own: SocketAddr, other: SocketAddr) -> bool {
    let sockets = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    let Some(inode) = inode(&sockets, own.port(), other.port()) else { return false };
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let socket = format!("socket:[{inode}]");
    files.into_iter().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == Path::new(&socket)))
}

/// The inode of the socket with these ports; see `proc_net_tcp(5)`. Connections to different ports may begin at the
/// same one.
fn inode(sockets: &str, own: u16, other: u16) -> Option<&str> {
    let [own, other] = [own, other].map(|port| format!(":{port:04X}"));
    let mut lines = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let has = |field: Option<&&str>, port: &str| field.is_some_and(|address| address.ends_with(port));
    lines.find(|fields| has(fields.get(1), &own) && has(fields.get(2), &other))?.get(9).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_belongs_to_the_process_that_opened_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (own, other) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(is_of(pid, own, other));
        assert!(!is_of(std::os::unix::process::parent_id().cast_signed(), own, other));
        drop(stream);
        assert!(!is_of(pid, own, other));
    }

    #[test]
    fn a_connection_is_known_by_both_ports() {
        let line = |other: &str, inode: &str| {
            format!("0: 0100007F:C350 0100007F:{other} 01 0:0 0:0 0 0 0 {inode} 1 0 20 4 30 10 -1\n")
        };
        let sockets = line("1F90", "11") + &line("1F91", "22");
        assert_eq!(inode(&sockets, 50_000, 8080), Some("11"));
        assert_eq!(inode(&sockets, 50_000, 8081), Some("22"));
        assert_eq!(inode(&sockets, 50_000, 8082), None);
    }
}
