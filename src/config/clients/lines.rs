//! From the offset of a byte to its line and column.

use crate::config::tree::Place;

/// How many bytes lie between two counts of characters: a line may be the whole file.
const STEP: usize = 256;

/// Knows where the lines of a text begin.
pub(super) struct Lines<'a> {
    text: &'a str,
    /// The offset of each line's first byte.
    begins: Vec<usize>,
    /// How many characters begin before each multiple of [`STEP`].
    counts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Lines<'a> {
        let bytes = text.as_bytes();
        let mut begins = vec![0];
        begins.extend(memchr::memchr_iter(b'\n', bytes).map(|at| at + 1));
        let mut counts = Vec::with_capacity(bytes.len() / STEP + 1);
        let mut count = 0;
        for block in bytes.chunks(STEP) {
            counts.push(count);
            count += characters(block);
        }
        counts.push(count);
        Lines { text, begins, counts }
    }

    /// The place of the byte at `offset`; the end of the text for what lies behind it.
    pub(super) fn at(&self, offset: usize) -> Place {
        let offset = offset.min(self.text.len());
        let line = self.begins.partition_point(|begin| *begin <= offset);
        let begin = self.begins.get(line - 1).copied().unwrap_or(0);
        let column = self.before(offset).saturating_sub(self.before(begin)) + 1;
        Place { line: number(line), column: number(column) }
    }

    /// How many characters begin before `offset`.
    fn before(&self, offset: usize) -> usize {
        let block = offset / STEP;
        let rest = self.text.as_bytes().get(block * STEP..offset).unwrap_or_default();
        self.counts.get(block).copied().unwrap_or(0) + characters(rest)
    }
}

/// How many characters begin in `bytes`, a piece of UTF-8.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let text = format!("é\r\n{}日x\n", "日".repeat(1000));
        let lines = Lines::of(&text);
        let place = |line, column| Place { line, column };
        assert_eq!(lines.at(0), place(1, 1));
        assert_eq!(lines.at(2), place(1, 2));
        assert_eq!(lines.at(4), place(2, 1));
        assert_eq!(lines.at(text.len() - 2), place(2, 1002));
        assert_eq!(lines.at(text.len()), place(3, 1));
        assert_eq!(lines.at(usize::MAX), place(3, 1));
        assert_eq!(Lines::of("").at(0), place(1, 1));
    }
}
