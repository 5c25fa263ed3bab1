//! The queue's decisions, without waiting: plain state. Nothing here takes longer than the logarithm of how
//! many wait.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The number of one who waits; later ones have larger numbers.
pub(super) type Ticket = u64;

/// Who runs and who waits. Lines are first come, first served; the lines of a kind take turns in a circle.
#[derive(Debug)]
pub(super) struct Turns<T> {
    max_waiting: usize,
    waiting: usize,
    next_number: u64,
    kinds: Vec<Kind<T>>,
    /// The length of every line, its newest ticket, its kind and its key: the last is the longest line, and
    /// of equally long ones that which was joined last.
    by_length: BTreeSet<(usize, Ticket, usize, Arc<str>)>,
}

/// Work with places of its own to run in.
#[derive(Debug)]
struct Kind<T> {
    max_running: usize,
    running: usize,
    waiting: usize,
    /// Those who wait, per key; no line is empty.
    lines: HashMap<Arc<str>, Line<T>>,
    /// The keys of `lines`; the first has the next turn.
    circle: BTreeMap<u64, Arc<str>>,
}

#[derive(Debug)]
struct Line<T> {
    waiters: BTreeMap<Ticket, T>,
    /// Its place in the circle.
    turn: u64,
}

impl<T> Turns<T> {
    pub(super) fn new(max_waiting: usize) -> Self {
        Self { max_waiting, waiting: 0, next_number: 0, kinds: Vec::new(), by_length: BTreeSet::new() }
    }

    /// Another kind of work, of which so many may run.
    pub(super) fn add_kind(&mut self, max_running: usize) -> usize {
        self.kinds.push(Kind {
            max_running,
            running: 0,
            waiting: 0,
            lines: HashMap::new(),
            circle: BTreeMap::new(),
        });
        self.kinds.len() - 1
    }

    pub(super) fn running(&self, kind: usize) -> usize {
        self.kinds.get(kind).map_or(0, |kind| kind.running)
    }

    /// How many wait to run as this kind of work.
    pub(super) fn waiting(&self, kind: usize) -> usize {
        self.kinds.get(kind).map_or(0, |kind| kind.waiting)
    }

    /// How many wait, of all kinds.
    pub(super) fn all_waiting(&self) -> usize {
        self.waiting
    }

    /// One arrives: whether it runs at once.
    pub(super) fn run(&mut self, kind: usize) -> bool {
        // A place is never free while someone waits: `end` hands it on.
        match self.kinds.get_mut(kind) {
            Some(kind) if kind.running < kind.max_running => {
                kind.running += 1;
                true
            }
            _ => false,
        }
    }

    /// One that cannot run joins its line. If too many wait then, the longest line loses its newest, which is
    /// returned and may be the one that has just come.
    pub(super) fn join(&mut self, kind: usize, key: &str, waiter: T) -> (Ticket, Option<T>) {
        let ticket = self.number();
        let turn = self.number();
        let Some(of_kind) = self.kinds.get_mut(kind) else { return (ticket, Some(waiter)) };
        if !of_kind.lines.contains_key(key) {
            let key: Arc<str> = key.into();
            of_kind.circle.insert(turn, key.clone());
            of_kind.lines.insert(key, Line { waiters: BTreeMap::new(), turn });
        }
        self.change(kind, key, |line| line.insert(ticket, waiter));
        let longest = if self.waiting > self.max_waiting { self.by_length.last().cloned() } else { None };
        let loser = longest.and_then(|(_, newest, kind, key)| self.leave(kind, &key, newest));
        (ticket, loser)
    }

    /// One of this kind has ended; the returned one runs in its place.
    pub(super) fn end(&mut self, kind: usize) -> Option<T> {
        let last = self.number();
        let of_kind = self.kinds.get_mut(kind)?;
        of_kind.running = of_kind.running.saturating_sub(1);
        let (_, key) = of_kind.circle.pop_first()?;
        of_kind.lines.get_mut(&key)?.turn = last;
        of_kind.circle.insert(last, key.clone());
        of_kind.running += 1;
        self.change(kind, &key, BTreeMap::pop_first).flatten().map(|(_, waiter)| waiter)
    }

    /// One gives up waiting; nothing happens if it no longer waits.
    pub(super) fn leave(&mut self, kind: usize, key: &str, ticket: Ticket) -> Option<T> {
        self.change(kind, key, |line| line.remove(&ticket)).flatten()
    }

    /// Changes who waits in a line, and what is known of that line elsewhere.
    fn change<R>(
        &mut self,
        kind: usize,
        key: &str,
        change: impl FnOnce(&mut BTreeMap<Ticket, T>) -> R,
    ) -> Option<R> {
        let of_kind = self.kinds.get_mut(kind)?;
        let key = of_kind.lines.get_key_value(key)?.0.clone();
        let line = of_kind.lines.get_mut(&key)?;
        let before = line.waiters.len();
        if let Some((&newest, _)) = line.waiters.last_key_value() {
            self.by_length.remove(&(before, newest, kind, key.clone()));
        }
        let result = change(&mut line.waiters);
        let after = line.waiters.len();
        of_kind.waiting = of_kind.waiting + after - before;
        self.waiting = self.waiting + after - before;
        if let Some((&newest, _)) = line.waiters.last_key_value() {
            self.by_length.insert((after, newest, kind, key));
        } else {
            of_kind.circle.remove(&line.turn);
            of_kind.lines.remove(&key);
        }
        Some(result)
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Whether all that is remembered of the lines agrees.
    #[cfg(test)]
    pub(super) fn is_consistent(&self) -> bool {
        let lines = || self.kinds.iter().flat_map(|kind| &kind.lines).map(|(_, line)| line.waiters.len());
        let circles = self.kinds.iter().all(|kind| {
            kind.lines.len() == kind.circle.len()
                && kind.lines.iter().all(|(key, line)| kind.circle.get(&line.turn) == Some(key))
                && kind.waiting == kind.lines.values().map(|line| line.waiters.len()).sum::<usize>()
        });
        circles
            && lines().all(|length| length > 0)
            && lines().sum::<usize>() == self.waiting
            && lines().count() == self.by_length.len()
            && self.by_length.last().map(|longest| longest.0) == lines().max()
    }
}
