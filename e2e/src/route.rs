//! The way from processes of this machine to the API server, which can be cut for some of them.

use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

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
    cut: watch::Sender<Cut>,
    _task: JoinSet<()>,
}

/// The processes that are cut off, and their ends of the connections.
#[derive(Default)]
struct Cut {
    processes: BTreeSet<i32>,
    ports: BTreeSet<u16>,
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

    /// Cuts processes off: their connections stay open, but nothing arrives on either side, and sent data is lost.
    pub fn cut<'p>(&self, processes: impl IntoIterator<Item = &'p Process>) {
        self.cut.send_modify(|cut| {
            cut.processes.extend(processes.into_iter().map(|process| process.pid));
            cut.ports = ports_of(&cut.processes, self.port);
        });
    }

    /// Ends all cuts. Connections that were cut are closed.
    pub fn heal(&self) {
        self.cut.send_replace(Cut::default());
    }
}

async fn serve(listener: TcpListener, to: String, cut: watch::Sender<Cut>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, peer)) = listener.accept().await {
        let Ok(local) = stream.local_addr() else { continue };
        // A process that is cut off may have opened it.
        cut.send_if_modified(|cut| {
            cut.ports = ports_of(&cut.processes, local.port());
            false
        });
        connections.spawn(connect(stream, peer, to.clone(), cut.subscribe()));
        while connections.try_join_next().is_some() {}
    }
}

async fn connect(mut from: TcpStream, peer: SocketAddr, to: String, mut cut: watch::Receiver<Cut>) {
    let passed_on = async {
        let mut to = TcpStream::connect(to).await?;
        copy_bidirectional(&mut from, &mut to).await
    };
    select! {
        biased;
        is_cut = cut.wait_for(|cut| cut.ports.contains(&peer.port())) => drop(is_cut),
        // A process that ends leaves its connections broken.
        _ = passed_on => return,
    }
    // Kept open, and not read.
    cut.wait_for(|cut| cut.processes.is_empty()).await.ok();
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

/// The ports of these processes on their connections to another one. The list of sockets is read once for all of them, because
/// it is long while tests run, and everybody on this route waits.
fn ports_of(processes: &BTreeSet<i32>, to: u16) -> BTreeSet<u16> {
    let sockets =
        processes.iter().flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd"))).flatten().flatten();
    let sockets: BTreeSet<PathBuf> = sockets.filter_map(|file| fs::read_link(file.path()).ok()).collect();
    if sockets.is_empty() {
        return BTreeSet::new();
    }
    let listed = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let ours = |(port, inode)| sockets.contains(Path::new(&format!("socket:[{inode}]"))).then_some(port);
    connections(&listed, to).filter_map(ours).collect()
}

/// The port of this side and the inode of each connection to a port; see `proc_net_tcp(5)`.
fn connections(sockets: &str, to: u16) -> impl Iterator<Item = (u16, &str)> {
    let to = format!(":{to:04X}");
    sockets.lines().filter_map(move |line| {
        let mut fields = line.split_whitespace().skip(1);
        let own = fields.next()?;
        fields.next().filter(|other| other.ends_with(&to))?;
        let (_, port) = own.rsplit_once(':')?;
        Some((u16::from_str_radix(port, 16).ok()?, fields.nth(6)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_belongs_to_the_process_that_opened_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (own, to) = (stream.local_addr().unwrap().port(), stream.peer_addr().unwrap().port());
        let this = i32::try_from(std::process::id()).unwrap();
        let parent = std::os::unix::process::parent_id().cast_signed();
        assert_eq!(ports_of(&[parent, this].into(), to), [own].into());
        assert_eq!(ports_of(&[parent].into(), to), [].into());
        assert_eq!(ports_of(&[this].into(), own), [].into());
        drop(stream);
        assert_eq!(ports_of(&[this].into(), to), [].into());
    }

    #[test]
    fn connections_to_another_port_do_not_count() {
        let line = |other: &str, inode: &str| {
            format!("0: 0100007F:C350 0100007F:{other} 01 0:0 0:0 0 0 0 {inode} 1 0 20 4 30 10 -1\n")
        };
        let sockets = line("1F90", "11") + &line("1F91", "22");
        assert_eq!(connections(&sockets, 8081).collect::<Vec<_>>(), [(50_000, "22")]);
        assert_eq!(connections(&sockets, 8082).next(), None);
    }
}
