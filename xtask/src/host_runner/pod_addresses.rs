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
    numbers: BTreeSet<u16>,
    last: u16,
}

impl PodAddresses {
    pub fn new(range: u8) -> Self {
        Self { range, taken: Mutex::default() }
    }

    /// An address that no pod has now. One that was given back comes again as late as possible.
    pub fn take(&self) -> Ipv4Addr {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            taken.last = taken.last.checked_add(1).unwrap_or(1);
            let number = taken.last;
            if taken.numbers.insert(number) {
                let [high, low] = number.to_be_bytes();
                return Ipv4Addr::new(127, self.range, high, low);
            }
        }
    }

    /// Takes an address back.
    pub fn give_back(&self, address: Ipv4Addr) {
        let [_, _, high, low] = address.octets();
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.numbers.remove(&u16::from_be_bytes([high, low]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_given_back_is_not_the_next_one_taken() {
        let addresses = PodAddresses::new(64);
        let first = addresses.take();
        assert_eq!(first, Ipv4Addr::new(127, 64, 0, 1));
        addresses.give_back(first);
        assert_eq!(addresses.take(), Ipv4Addr::new(127, 64, 0, 2));
    }
}
