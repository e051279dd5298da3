//! Which element of one list is which of another.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use super::domain::Types;
use super::found::Work;

/// What an alternative is known by.
#[derive(Debug)]
pub(super) struct Traits<'d> {
    /// The number of what is written there.
    pub(super) number: u32,
    pub(super) types: Types,
    /// The names of its properties, and the numbers of their schemas.
    pub(super) members: Vec<(Cow<'d, str>, u32)>,
}

/// What became of the elements of two lists.
#[derive(Debug, Default)]
pub(super) struct Matched {
    pub(super) pairs: Vec<(usize, usize)>,
    pub(super) gone: Vec<usize>,
    pub(super) added: Vec<usize>,
}

/// The most elements on each side whose likeness is looked into; more are taken in their order.
const MAX_LIKENESS: usize = 64;

/// Matches elements by what is written there.
pub(super) fn match_numbers(old: &[u32], new: &[u32]) -> Matched {
    let mut places: HashMap<u32, VecDeque<usize>> = HashMap::new();
    for (n, number) in new.iter().enumerate() {
        places.entry(*number).or_default().push_back(n);
    }
    let mut matched = Matched::default();
    for (n, number) in old.iter().enumerate() {
        match places.get_mut(number).and_then(VecDeque::pop_front) {
            Some(m) => matched.pairs.push((n, m)),
            None => matched.gone.push(n),
        }
    }
    matched.added = places.into_values().flatten().collect();
    matched.added.sort_unstable();
    matched
}

/// Matches elements by what is written there, and the rest in their order.
pub(super) fn match_in_order(old: &[u32], new: &[u32]) -> Matched {
    let mut matched = match_numbers(old, new);
    let count = matched.gone.len().min(matched.added.len());
    let rest: Vec<_> = matched.gone.drain(..count).zip(matched.added.drain(..count)).collect();
    matched.pairs.extend(rest);
    matched
}

/// Matches alternatives: those written the same, then those most alike of the same types. Which are
/// matched decides how a change is told, never whether it is one.
pub(super) fn match_up(work: &mut Work<'_>, old: &[Traits<'_>], new: &[Traits<'_>]) -> Matched {
    let numbers = |traits: &[Traits<'_>]| traits.iter().map(|t| t.number).collect::<Vec<_>>();
    let mut matched = match_numbers(&numbers(old), &numbers(new));
    let mut likely = Vec::new();
    for a in matched.gone.iter().take(MAX_LIKENESS) {
        let known: HashMap<&str, u32> = old[*a].members.iter().map(|(name, number)| (name.as_ref(), *number)).collect();
        for b in matched.added.iter().take(MAX_LIKENESS).filter(|b| old[*a].types.meets(new[**b].types)) {
            work.spend(1 + new[*b].members.len());
            let likeness = new[*b].members.iter().map(|(name, number)| match known.get(name.as_ref()) {
                Some(same) if same == number => 3,
                Some(_) => 1,
                None => 0,
            });
            let same_types = usize::from(old[*a].types == new[*b].types);
            likely.push((std::cmp::Reverse(likeness.sum::<usize>() * 2 + same_types), *a, *b));
        }
    }
    likely.sort_unstable();
    let (mut of_old, mut of_new) = (HashSet::new(), HashSet::new());
    for (_, a, b) in likely {
        if !of_old.contains(&a) && !of_new.contains(&b) {
            of_old.insert(a);
            of_new.insert(b);
            matched.pairs.push((a, b));
        }
    }
    matched.gone.retain(|a| !of_old.contains(a));
    matched.added.retain(|b| !of_new.contains(b));
    matched
}
