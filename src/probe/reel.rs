//! What is kept of a probe that went wrong, for a person to look at afterwards: how it began and how it ended.

use std::collections::VecDeque;
use std::mem::size_of;
use std::time::Duration;

use super::process::Swept;
use super::tape::{Happening, Written};
use crate::words::At;

/// How much is kept of the beginning, and of the end, in bytes: 16 KiB in all.
const HALF: usize = 8 << 10;
/// How much is kept of what was written at once, in bytes of its text.
const PIECE: usize = 400;
/// What a failed launch counts for: it holds a command and perhaps a PATH.
const LAUNCH_COST: usize = 1 << 10;

/// The beginning and the end of what happened in a probe, at most 16 KiB of it. Secrets are masked before
/// anything is cut.
#[derive(Clone, Debug, Default)]
pub struct Reel {
    first: Vec<Scene>,
    last: VecDeque<Scene>,
    /// What the two weigh, in bytes.
    weights: [usize; 2],
    left_out: usize,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Scene {
    /// When, since the probe began.
    pub at: At,
    /// What; of a text perhaps only the beginning, of what was cleared away nothing.
    pub happening: Happening,
    /// How long the text was, in bytes, if only its beginning is kept.
    pub whole: Option<usize>,
}

impl Scene {
    fn of(at: At, happening: &Happening) -> Scene {
        let (happening, whole) = if let Happening::Sent(written) = happening {
            cut(written, Happening::Sent)
        } else if let Happening::Stdout(written) = happening {
            cut(written, Happening::Stdout)
        } else if let Happening::Stderr(written) = happening {
            cut(written, Happening::Stderr)
        } else if let Happening::Swept { usage, .. } = happening {
            (Happening::Swept { swept: Swept::default(), usage: *usage }, None)
        } else {
            (happening.clone(), None)
        };
        Scene { at, happening, whole }
    }

    fn weight(&self) -> usize {
        let text = match (self.happening.written(), &self.happening) {
            (Some(written), _) => written.text().len(),
            (None, Happening::BrowserCalled { origin, .. }) => origin.len(),
            (None, Happening::SpawnFailed { .. }) => LAUNCH_COST,
            (None, _) => 0,
        };
        size_of::<Scene>() + text
    }
}

/// The beginning of a text, and how long it was, in bytes, if it is cut.
fn cut(written: &Written, made: fn(Written) -> Happening) -> (Happening, Option<usize>) {
    let beginning = |text: &str| text[..text.floor_char_boundary(PIECE)].to_owned();
    match written {
        Written::Text(text) if text.len() > PIECE => (made(Written::Text(beginning(text))), Some(text.len())),
        Written::Hex(hex) if hex.len() > PIECE => (made(Written::Hex(beginning(hex))), Some(hex.len() / 2)),
        Written::Text(_) | Written::Hex(_) => (made(written.clone()), None),
    }
}

impl Reel {
    /// Something happened, whose secrets are masked.
    pub(super) fn push(&mut self, at: At, happening: &Happening) {
        let scene = Scene::of(at, happening);
        let weight = scene.weight();
        // Once something is at the end, the beginning is over.
        if self.last.is_empty() && self.weights[0] + weight <= HALF {
            self.weights[0] += weight;
            self.first.push(scene);
            return;
        }
        self.weights[1] += weight;
        self.last.push_back(scene);
        while self.weights[1] > HALF
            && let Some(old) = self.last.pop_front()
        {
            self.weights[1] -= old.weight();
            self.left_out += 1;
        }
    }

    /// The same, taking no more room than it needs.
    pub(super) fn shrunk(mut self) -> Reel {
        self.first.shrink_to_fit();
        self.last.shrink_to_fit();
        self
    }

    /// How it began, in order.
    pub fn first(&self) -> impl Iterator<Item = &Scene> {
        self.first.iter()
    }

    /// How much is left out between the beginning and the end.
    #[must_use]
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// How it ended, in order, where that is not kept with the beginning.
    pub fn last(&self) -> impl Iterator<Item = &Scene> {
        self.last.iter()
    }
}

impl Scene {
    /// When it happened.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.at.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stderr(text: String) -> Happening {
        Happening::Stderr(Written::Text(text))
    }

    #[test]
    fn the_beginning_and_the_end_are_kept_and_no_more_than_fits() {
        let mut reel = Reel::default();
        (0..10_000).for_each(|n| reel.push(At::START, &stderr(format!("line {n} {}\n", "é".repeat(n % 700)))));
        let weigh = |scenes: Vec<&Scene>| scenes.iter().map(|scene| scene.weight()).sum::<usize>();
        assert_eq!(reel.weights, [weigh(reel.first().collect()), weigh(reel.last().collect())]);
        assert!(reel.weights.iter().all(|weight| (HALF - 1024..=HALF).contains(weight)), "{:?}", reel.weights);
        let shown = |scene: Option<&Scene>| format!("{:?}", scene.unwrap().happening);
        assert!(shown(reel.first().next()).contains("line 0 ") && shown(reel.last().last()).contains("line 9999 "));
        assert_eq!(reel.first().count() + reel.last().count() + reel.left_out(), 10_000);
        let cut = reel.last().last().unwrap();
        assert!(matches!(&cut.happening, Happening::Stderr(Written::Text(text)) if text.len() <= PIECE), "{cut:?}");
        assert_eq!(cut.whole, Some("line 9999 \n".len() + 2 * (9999 % 700)));
    }

    #[test]
    fn a_short_probe_is_kept_whole() {
        let mut reel = Reel::default();
        let hex = Happening::Stdout(Written::Hex("ff".repeat(900)));
        for happening in [Happening::Launch, stderr("why\n".to_owned()), hex, Happening::Sigkill] {
            reel.push(At::START, &happening);
        }
        assert_eq!((reel.first().count(), reel.last().count(), reel.left_out()), (4, 0, 0));
        assert_eq!(reel.first().nth(2).unwrap().whole, Some(900));
    }
}
