//! The memory of each client: see [`Memory::share`].

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use crate::{Memory, memory::Share};

/// Shares of which nobody holds a byte are forgotten when there are more than so many, and each time they have
/// doubled since.
const FEW: usize = 64;

/// The shares of all clients, told apart by their addresses: one that opens many connections has one share.
#[derive(Debug, Clone)]
pub(crate) struct Shares {
    memory: Memory,
    by_client: Arc<Mutex<ByClient>>,
}

#[derive(Debug, Default)]
struct ByClient {
    shares: HashMap<Option<IpAddr>, Weak<Share>>,
    /// How many there may be before those in use are counted again.
    many: usize,
}

impl Shares {
    pub(crate) fn new(memory: Memory) -> Self {
        Self { memory, by_client: Arc::default() }
    }

    /// The memory of the client at this address.
    pub(crate) fn of(&self, client: Option<IpAddr>) -> Memory {
        let mut by_client = self.by_client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = by_client.shares.get(&client).and_then(Weak::upgrade) {
            return self.memory.with_share(share);
        }
        if by_client.shares.len() >= by_client.many.max(FEW) {
            by_client.shares.retain(|_, share| share.strong_count() > 0);
            by_client.many = by_client.shares.len() * 2;
        }
        let share = Arc::new(Share::default());
        by_client.shares.insert(client, Arc::downgrade(&share));
        self.memory.with_share(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "as they are asked for")]
    fn client(number: u32) -> Option<IpAddr> {
        Some(IpAddr::from(number.to_be_bytes()))
    }

    #[test]
    fn the_calls_of_one_client_have_one_share() {
        let shares = Shares::new(Memory::new(1000));
        let first = shares.of(client(1)).try_reserve(700).unwrap();
        assert!(shares.of(client(1)).try_reserve(200).is_err());
        assert!(shares.of(client(2)).try_reserve(200).is_ok());
        assert!(shares.of(None).try_reserve(200).is_ok());
        drop(first);
        assert!(shares.of(client(1)).try_reserve(700).is_ok());
    }

    #[test]
    fn clients_that_are_gone_are_forgotten() {
        let shares = Shares::new(Memory::new(1000));
        let held: Vec<_> = (0..100).map(|number| shares.of(client(number))).collect();
        for number in 100..10_000 {
            let _ = shares.of(client(number));
        }
        let left = shares.by_client.lock().unwrap().shares.len();
        assert!((held.len()..=3 * held.len()).contains(&left), "{left}");
    }
}
