//! Chooses unused ports and addresses.

use std::{collections::BTreeSet, fs::File, net::TcpListener};

use anyhow::{Context, Result};

use crate::{
    home::{self, Home},
    state::{Addresses, State},
};

/// Below the kernel's range for outgoing connections, so that no port is taken between the choice and its use.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// 127.64.0.0/16 to 127.127.0.0/16.
const POD_RANGES: std::ops::Range<u8> = 64..128;

/// A choice that is reserved as soon as it is written to the cluster's state.
pub struct Choice {
    pub addresses: Addresses,
    /// Held so that other runs choose later.
    _lock: File,
}

/// Chooses for one cluster, apart from all other clusters of this user.
pub fn choose() -> Result<Choice> {
    let path = home::all_clusters()?.join(".addresses.lock");
    let lock = File::create(&path).with_context(|| format!("could not create {}", path.display()))?;
    lock.lock().with_context(|| format!("could not lock {}", path.display()))?;

    let mut taken = BTreeSet::new();
    let mut ranges = BTreeSet::new();
    for home in Home::existing()? {
        // An unreadable state is a problem of that cluster; its ports are detected when they are bound.
        if let Ok(Some(state)) = State::read(&home) {
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
        pods: POD_RANGES
            .clone()
            .find(|range| !ranges.contains(range))
            .context("no free loopback range: too many clusters: take one down")?,
    };
    Ok(Choice { addresses, _lock: lock })
}
