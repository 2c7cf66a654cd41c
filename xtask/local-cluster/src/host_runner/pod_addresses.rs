//! A loopback address for each pod, so that every pod can listen on the same port.

use std::{
    collections::BTreeSet,
    net::Ipv4Addr,
    sync::{Mutex, PoisonError},
};

/// The addresses of one cluster: 127.RANGE.0.0/16.
pub struct PodAddresses {
    range: u8,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    addresses: BTreeSet<Ipv4Addr>,
    last: u16,
}

impl PodAddresses {
    pub fn new(range: u8) -> Self {
        Self { range, taken: Mutex::default() }
    }

    /// The former address of the pod, or an unused one. Returned addresses are reused as late as possible.
    pub fn take(&self, before: Option<Ipv4Addr>) -> Ipv4Addr {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = before.filter(|before| before.octets()[..2] == [127, self.range])
            && taken.addresses.insert(before)
        {
            return before;
        }
        loop {
            taken.last = taken.last.checked_add(1).unwrap_or(1);
            let [high, low] = taken.last.to_be_bytes();
            let address = Ipv4Addr::new(127, self.range, high, low);
            if taken.addresses.insert(address) {
                return address;
            }
        }
    }

    /// Takes an address back.
    pub fn give_back(&self, address: Ipv4Addr) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).addresses.remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_given_back_is_not_the_next_one_taken() {
        let addresses = PodAddresses::new(64);
        let first = addresses.take(None);
        assert_eq!(first, Ipv4Addr::new(127, 64, 0, 1));
        addresses.give_back(first);
        assert_eq!(addresses.take(None), Ipv4Addr::new(127, 64, 0, 2));
    }

    #[test]
    fn a_pod_keeps_its_address_when_nobody_else_has_it() {
        let addresses = PodAddresses::new(64);
        let before = Ipv4Addr::new(127, 64, 0, 1);
        assert_eq!(addresses.take(Some(before)), before);
        assert_eq!(addresses.take(Some(before)), Ipv4Addr::new(127, 64, 0, 2));
        assert_eq!(addresses.take(Some(Ipv4Addr::LOCALHOST)), Ipv4Addr::new(127, 64, 0, 3));
    }
}
