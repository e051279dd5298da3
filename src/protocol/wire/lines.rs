//! Bytes into lines, with a limit that counts the bytes of one line and nothing else.

/// The length of a line that needs no more memory than every reader has, in bytes.
const SMALL: usize = 64 << 10;
/// How much of a line over the limit is kept, to show.
const HEAD: usize = 200;

/// Where a line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number; the first one is 1.
    pub line: u64,
    /// The bytes of stdout before it.
    pub offset: u64,
}

impl Place {
    const START: Place = Place { line: 1, offset: 0 };
}

/// What [`Lines::feed`] hands on.
pub(super) enum Cut<'b> {
    /// A line, without the `\n`.
    Line(&'b [u8]),
    /// The line that goes on here has passed the limit. Said once a line, as soon as it is so; the
    /// line itself is dropped, its first bytes are given.
    TooLong(&'b [u8]),
}

pub(super) struct Lines {
    limit: usize,
    /// The beginning of a line whose end has not come.
    held: Vec<u8>,
    /// That line is over the limit: how many of its bytes are not held.
    dropped: Option<u64>,
    /// Long lines are of no interest any more.
    careless: bool,
    place: Place,
}

impl Lines {
    pub(super) fn new(limit: usize) -> Lines {
        Lines { limit, held: Vec::new(), dropped: None, careless: false, place: Place::START }
    }

    /// Takes `bytes` and hands on each line that ends in them.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut sink: impl FnMut(Place, Cut<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (part, rest) = (&bytes[..end], &bytes[end + 1..]);
            let length = self.length() + part.len() as u64;
            if self.length() == 0 && part.len() <= self.limit {
                sink(self.place, Cut::Line(part));
            } else {
                self.hold(part, &mut sink);
                if self.dropped.is_none() {
                    sink(self.place, Cut::Line(&self.held));
                }
                self.release();
            }
            self.place = Place { line: self.place.line + 1, offset: self.place.offset + length + 1 };
            bytes = rest;
        }
        self.hold(bytes, &mut sink);
    }

    /// From now on no line is held that needs more memory than that which every reader has; nothing is said of those that are
    /// dropped.
    pub(super) fn drop_long_ones(&mut self) {
        self.careless = true;
        self.limit = self.limit.min(SMALL);
        self.hold(&[], &mut |_, _| {});
    }

    /// How much memory the line that has begun takes, in bytes.
    pub(super) fn held(&self) -> usize {
        self.held.capacity()
    }

    /// The line that has begun and not ended: where, how long so far, and its first bytes (all of
    /// them, unless it is over the limit).
    pub(super) fn unfinished(&self) -> Option<(Place, u64, &[u8])> {
        let length = self.length();
        (length > 0).then_some((self.place, length, self.held.as_slice()))
    }

    /// The bytes so far of the line that has begun.
    fn length(&self) -> u64 {
        self.held.len() as u64 + self.dropped.unwrap_or(0)
    }

    fn hold(&mut self, part: &[u8], sink: &mut impl FnMut(Place, Cut<'_>)) {
        let length = self.held.len() + part.len();
        match &mut self.dropped {
            Some(dropped) => *dropped += part.len() as u64,
            None if length <= self.limit => {
                self.reserve(part.len());
                self.held.extend_from_slice(part);
            }
            None => {
                let head = HEAD.min(self.limit);
                self.held.extend_from_slice(&part[..part.len().min(head.saturating_sub(self.held.len()))]);
                self.held.truncate(head);
                self.held.shrink_to_fit();
                self.dropped = Some((length - self.held.len()) as u64);
                if !self.careless {
                    sink(self.place, Cut::TooLong(&self.held));
                }
            }
        }
    }

    /// Grows by doubling, but never past the limit.
    fn reserve(&mut self, more: usize) {
        let wanted = self.held.len() + more;
        if wanted > self.held.capacity() {
            let room = wanted.max((self.held.capacity() * 2).min(self.limit));
            self.held.reserve_exact(room - self.held.len());
        }
    }

    /// Forgets the held line, and its memory if it was a large one.
    fn release(&mut self) {
        self.held.clear();
        self.held.shrink_to(SMALL);
        self.dropped = None;
    }
}
