//! Which list is to be asked for next, and what came of it.
//!
//! Every offered list is read to its end, then a second time if the plan says so. What differs
//! between the two is volatile, unless the server said meanwhile that the list had changed: then it
//! is read again, as a client would, and not for ever.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::observation::{ListSeen, What};
use crate::protocol::json::first_difference;
use crate::protocol::mcp::{Greeting, Item, ListKind, ListPage};
use crate::words::Digest;

/// How much is kept of the lists that are read in one round, in bytes, as [`Item::weight`] counts. What does not end would
/// fill the memory page by page.
const MAX_WEIGHT: usize = 8 << 20;

/// What is to be noted, and the bytes that show it.
pub(super) type Noted = (What, Arc<[u8]>);

/// How often a list is read in one session at the most.
const MAX_ROUNDS: u32 = 4;

/// The progress of the lists in one session.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// One for each offered list.
    read: Vec<Reading>,
    /// The one that is being read, an index into `read`.
    current: usize,
    /// The first round is 0.
    round: u32,
    twice: bool,
    max_pages: u32,
    late_tools: Duration,
    /// What of this round is kept, in bytes.
    weight: usize,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Ask for this page.
    Ask(ListKind, Option<String>),
    /// Give the tools until then to appear, or until the server says that they have.
    AwaitTools(Duration),
    /// Everything has been read.
    Done,
}

#[derive(Debug)]
struct Reading {
    kind: ListKind,
    /// What the first round found, and then what the second one did.
    items: Vec<Item>,
    /// It was read to its end, and nothing is missing.
    complete: bool,
    /// It will not be read on.
    ended: bool,
    refused: bool,
    /// The items of the first round while the second one is read.
    before: Option<Vec<Item>>,
    /// Nothing was said to have changed since the round before, so this one should be the same.
    compare: bool,
    /// Two rounds were compared.
    compared: bool,
    asked: bool,
    /// A page came, in whichever round.
    known: bool,
    pages: u32,
    cursors: HashSet<Digest>,
    next: Option<String>,
    /// `list_changed` came since the list was last asked for from its beginning.
    changed: bool,
    /// The tool list was empty, and is given time.
    awaited: bool,
}

impl Reading {
    fn new(kind: ListKind) -> Reading {
        Reading {
            kind,
            items: Vec::new(),
            complete: false,
            ended: false,
            refused: false,
            before: None,
            compare: false,
            compared: false,
            asked: false,
            known: false,
            pages: 0,
            cursors: HashSet::new(),
            next: None,
            changed: false,
            awaited: false,
        }
    }

    fn restart(&mut self) {
        self.before = Some(std::mem::take(&mut self.items));
        self.complete = false;
        self.ended = false;
        self.pages = 0;
        self.cursors.clear();
        self.next = None;
    }
}

impl Lists {
    pub(super) fn new(greeting: &Greeting, twice: bool, max_pages: u32, late_tools: Duration) -> Lists {
        let read = ListKind::ALL.into_iter().filter(|kind| greeting.offers(*kind)).map(Reading::new).collect();
        Lists { read, current: 0, round: 0, twice, max_pages, late_tools, weight: 0 }
    }

    /// How much the next page may weigh, in bytes.
    pub(super) fn room(&self) -> usize {
        MAX_WEIGHT - self.weight.min(MAX_WEIGHT)
    }

    /// About how much memory the lists take, in bytes.
    pub(super) fn held(&self) -> usize {
        if self.round == 0 { self.weight } else { 2 * self.weight }
    }

    /// What to do now that everything asked so far was answered.
    pub(super) fn next(&mut self) -> Next {
        loop {
            let Some(reading) = self.read.get_mut(self.current) else {
                if !self.begin_another_round() {
                    return Next::Done;
                }
                continue;
            };
            if reading.refused || reading.ended {
                self.current += 1;
            } else {
                if reading.pages == 0 {
                    (reading.asked, reading.changed) = (true, false);
                }
                return Next::Ask(reading.kind, reading.next.clone());
            }
            if let Some(wait) = self.tools_to_await() {
                return wait;
            }
        }
    }

    /// An empty tool list right after the handshake is given some time, once.
    fn tools_to_await(&mut self) -> Option<Next> {
        let tools = self.read.get_mut(self.current.checked_sub(1)?)?;
        let empty = tools.kind == ListKind::Tools && tools.ended && tools.items.is_empty();
        if !empty || tools.awaited || self.late_tools.is_zero() {
            return None;
        }
        tools.awaited = true;
        Some(Next::AwaitTools(self.late_tools))
    }

    /// The time given to an empty tool list is over, or the server said that it changed: read it again.
    pub(super) fn ask_for_tools_again(&mut self) {
        self.current = 0;
        if let Some(tools) = self.read.first_mut() {
            tools.restart();
        }
    }

    /// Starts reading again whatever is to be read again; says whether anything is.
    fn begin_another_round(&mut self) -> bool {
        if self.round + 1 >= MAX_ROUNDS {
            return false;
        }
        let twice = self.twice;
        let again = |r: &&mut Reading| !r.refused && (r.changed || twice && !r.compared);
        let mut any = false;
        for reading in self.read.iter_mut().filter(again) {
            any = true;
            reading.compare = !reading.changed;
            reading.restart();
        }
        if any {
            self.round += 1;
            self.current = 0;
            self.weight = 0;
        }
        any
    }

    /// The server said that a list changed.
    pub(super) fn changed(&mut self, kind: ListKind) {
        for reading in self.read.iter_mut().filter(|r| r.asked && r.kind.capability() == kind.capability()) {
            reading.changed = true;
        }
    }

    /// Whether everything has been read once, and is only read again.
    pub(super) fn is_repeating(&self) -> bool {
        self.round > 0 || self.read.first().is_some_and(|r| r.awaited && r.before.is_some())
    }

    /// Whether the server may be holding tools back that it has said are there now.
    pub(super) fn tools_changed(&self) -> bool {
        self.read.first().is_some_and(|r| r.kind == ListKind::Tools && r.changed)
    }

    /// A page came. Returns what is to be noted.
    pub(super) fn page(&mut self, page: ListPage) -> Vec<Noted> {
        let Some(reading) = self.read.get_mut(self.current) else { return Vec::new() };
        let list = reading.kind;
        reading.pages += 1;
        reading.known = true;
        let first = self.round == 0 && !reading.awaited;
        let mut noted = Vec::new();
        if self.round == 0 {
            noted.extend(page.items.iter().flat_map(tool_flaws));
        }
        if page.no_list {
            reading.refused = true;
            return noted;
        }
        let (count, was_lost, was_cut) = (page.items.len(), page.lost, page.cut);
        self.weight += page.items.iter().map(Item::weight).sum::<usize>();
        reading.items.extend(page.items);
        reading.next = None;
        let stop = match page.next {
            cursor if was_cut => Some((What::Incomplete { list, why: "the limit on what is kept of lists was reached" }, cursor.unwrap_or_default())),
            None => None,
            Some(cursor) if !reading.cursors.insert(Digest::of(cursor.as_bytes())) => Some((What::CursorLoop { list }, cursor)),
            Some(cursor) if reading.pages >= self.max_pages => Some((What::Incomplete { list, why: "the limit on pages was reached" }, cursor)),
            Some(cursor) => {
                reading.next = Some(cursor);
                return noted;
            }
        };
        reading.complete = stop.is_none() && !was_lost;
        reading.ended = true;
        if matches!(stop, Some((What::CursorLoop { .. }, _))) {
            // The page that leads back to itself may be one that was there before.
            let (before, last) = reading.items.split_at(reading.items.len() - count);
            let before: HashSet<Digest> = before.iter().map(|item| item.digest).collect();
            if last.iter().all(|item| before.contains(&item.digest)) {
                reading.items.truncate(reading.items.len() - count);
            }
        }
        noted.extend(stop.filter(|_| first).map(|(what, cursor)| (what, cursor.into_bytes().into())));
        noted.extend(self.finished());
        noted
    }

    /// A list has been read to its end. Returns what is to be noted.
    fn finished(&mut self) -> Vec<Noted> {
        let Some(reading) = self.read.get_mut(self.current) else { return Vec::new() };
        let late = reading.awaited && self.round == 0 && !reading.items.is_empty();
        let compare = reading.compare && !reading.changed;
        reading.compared |= compare;
        let what = match reading.before.take() {
            Some(before) if compare => volatile(reading.kind, &before, &reading.items),
            Some(_) if late => {
                let late = What::LateTools { tools: reading.items.len() };
                std::iter::once(late).chain(duplicate_names(reading)).collect()
            }
            Some(_) => Vec::new(),
            None => duplicate_names(reading),
        };
        what.into_iter().map(|what| (what, Arc::default())).collect()
    }

    /// Whether there may be tools that were not read.
    pub(super) fn hides_tools(&self) -> bool {
        self.read.iter().any(|r| r.kind == ListKind::Tools && !r.complete && r.before.is_none())
    }

    /// The tool of this name, if it was listed.
    pub(super) fn tool(&self, name: &str) -> Option<&Item> {
        // Not by its name as it is shown, in which something may be masked.
        let identity = Digest::of(name.as_bytes());
        self.read.iter().filter(|r| r.kind == ListKind::Tools).flat_map(|r| &r.items).find(|item| item.identity == identity)
    }

    /// The server does not have the list, and has not promised to.
    pub(super) fn absent(&mut self) {
        if self.current < self.read.len() {
            self.read.remove(self.current);
        }
    }

    /// The list was answered with an error, or not at all.
    pub(super) fn refused(&mut self) {
        if let Some(reading) = self.read.get_mut(self.current) {
            reading.refused = true;
            reading.items.clear();
        }
    }

    /// What was read, at the end of the session. `noted` gets what can be said only now.
    pub(super) fn into_seen(self, noted: &mut Vec<What>) -> Vec<ListSeen> {
        let cut = self.current;
        let (round, last_round) = (self.round, self.round + 1 >= MAX_ROUNDS);
        self.read
            .into_iter()
            .enumerate()
            .filter(|(n, r)| *n <= cut || r.known || round > 0)
            .map(|(_, r)| {
                if last_round && r.changed {
                    noted.push(What::ChangedLoop { list: r.kind });
                }
                // A round that was cut short says less than the one before.
                let (items, complete) = match r.before {
                    Some(before) if !r.ended => (before, true),
                    _ => (r.items, r.complete),
                };
                ListSeen { kind: r.kind, items, complete, unknown: r.refused || !r.known }
            })
            .collect()
    }
}

fn tool_flaws(item: &Item) -> impl Iterator<Item = Noted> {
    item.flaws.iter().map(|flaw| (What::Tool { name: item.name.clone(), flaw: flaw.clone() }, Arc::clone(&item.canonical)))
}

/// Tools of one name: of other lists, clients do not ask for things by name alone.
fn duplicate_names(reading: &Reading) -> Vec<What> {
    if reading.kind != ListKind::Tools {
        return Vec::new();
    }
    let mut names: Vec<(Digest, &str)> = reading.items.iter().map(|item| (item.identity, item.name.as_str())).collect();
    names.sort_unstable();
    let mut twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    twice.dedup();
    twice.into_iter().map(|(_, name)| What::DuplicateName { list: reading.kind, name: name.to_owned() }).collect()
}

/// What differs between two listings of one session, the order of items aside.
fn volatile(list: ListKind, before: &[Item], after: &[Item]) -> Vec<What> {
    if before.iter().map(|i| i.digest).eq(after.iter().map(|i| i.digest)) {
        return Vec::new();
    }
    // By the whole name, and then by what they are: items of one name are told apart as far as can be.
    type Key<'k> = (&'k str, Digest, usize);
    fn keyed(items: &[Item]) -> BTreeMap<Key<'_>, &Item> {
        let mut sorted: Vec<&Item> = items.iter().collect();
        sorted.sort_by_key(|item| (item.identity, item.digest));
        let mut keyed = BTreeMap::new();
        let mut last = None;
        for item in sorted {
            let nth = if let Some((identity, n)) = last
                && identity == item.identity
            {
                n + 1
            } else {
                0
            };
            last = Some((item.identity, nth));
            keyed.insert((item.name.as_str(), item.identity, nth), item);
        }
        keyed
    }
    let (before, after) = (keyed(before), keyed(after));
    let keys: BTreeSet<&Key<'_>> = before.keys().chain(after.keys()).collect();
    keys.into_iter()
        .filter_map(|key| {
            let pointer = match (before.get(key), after.get(key)) {
                (Some(old), Some(new)) if old.digest == new.digest => return None,
                (Some(old), Some(new)) => first_difference(&old.canonical, &new.canonical),
                _ => String::new(),
            };
            Some(What::Volatile { list, item: key.0.to_owned(), pointer })
        })
        .collect()
}
