//! Chooses unused ports and addresses.

use std::{
    collections::BTreeSet,
    fs::File,
    net::{Ipv4Addr, TcpListener},
};

use anyhow::{Context, Result};

use crate::{
    files,
    local_cluster::{LocalCluster, all_clusters},
    state::{Addresses, State},
};

/// Below the kernel's range for outgoing connections, so that no port is taken between the choice and its use.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// 127.64.0.0/16 to 127.127.0.0/16.
const POD_RANGES: std::ops::Range<u8> = 64..128;
/// A supervisor listens there on the first address of its range, which no pod gets, so that clusters of other users and
/// caches choose other ranges.
const RESERVATION_PORT: u16 = 19_999;

/// A choice that is reserved as soon as it is written to the cluster's state; it has to live until then.
pub struct Choice {
    pub addresses: Addresses,
    /// Held so that other runs choose later.
    _lock: File,
}

/// Chooses for one cluster, apart from all other clusters of this user.
pub fn choose() -> Result<Choice> {
    let path = all_clusters()?.join(".addresses.lock");
    let lock = files::create(&path)?;
    lock.lock().with_context(|| format!("could not lock {}", path.display()))?;

    let mut taken = BTreeSet::new();
    let mut ranges = BTreeSet::new();
    for cluster in LocalCluster::all()? {
        // An unreadable state is a problem of that cluster; its ports are detected when they are bound.
        if let Ok(Some(state)) = State::read(&cluster) {
            taken.extend(state.addresses.ports());
            ranges.insert(state.addresses.pods);
        }
    }
    // Spread by process id, so that several users of one machine seldom try the same ports.
    let offset = u16::try_from(std::process::id() % 1_000).unwrap_or(0) * 10;
    let mut free = (PORTS.start + offset..PORTS.end)
        .chain(PORTS.start..PORTS.start + offset)
        .filter(|port| !taken.contains(port) && TcpListener::bind(("127.0.0.1", *port)).is_ok());
    let mut next =
        || free.next().context("no free port between 20000 and 31999 on 127.0.0.1: stop something");
    let addresses = Addresses {
        etcd: next()?,
        etcd_peer: next()?,
        api_server: next()?,
        controller_manager: next()?,
        scheduler: next()?,
        pods: free_range(&ranges, std::process::id()).with_context(|| {
            format!(
                "no free loopback range: take a cluster down, or stop what listens on port {RESERVATION_PORT} of all \
                 addresses"
            )
        })?,
    };
    Ok(Choice { addresses, _lock: lock })
}

/// Reserves a range of pods against everybody on this machine, until the result is dropped.
pub fn reserve(range: u8) -> Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::new(127, range, 0, 0), RESERVATION_PORT)).with_context(|| {
        format!("the addresses 127.{range}.0.0/16 of this cluster's pods are used by another cluster")
    })
}

/// The first free range after one that differs from process to process.
fn free_range(taken: &BTreeSet<u8>, process: u32) -> Option<u8> {
    let mut ranges: Vec<u8> = POD_RANGES.collect();
    let start = process as usize % ranges.len();
    ranges.rotate_left(start);
    ranges.into_iter().find(|range| !taken.contains(range) && reserve(*range).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_a_cluster_of_another_cache_has_reserved_is_not_chosen() {
        let none = BTreeSet::new();
        // Another test or cluster may be faster with one of them.
        let reserved = |process: u32| {
            let range = free_range(&none, process)?;
            Some((process, range, reserve(range).ok()?))
        };
        let (process, first, _reserved) = (5..60).find_map(reserved).unwrap();
        let second = free_range(&none, process).unwrap();
        assert_ne!(first, second);
        assert_ne!(free_range(&BTreeSet::from([second]), process), Some(second), "this cache has it");
    }

    #[test]
    fn two_processes_begin_with_different_ranges() {
        let none = BTreeSet::new();
        assert_ne!(free_range(&none, 30), free_range(&none, 45));
    }
}
