//! What is kept of an output: its head and its tail.

use std::collections::VecDeque;

/// Bytes as they come, of which the middle is forgotten.
#[derive(Debug)]
pub(crate) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// The most bytes of the head, and of the tail.
    half: usize,
    written: u64,
}

impl Kept {
    pub(crate) fn new(limit: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half: limit.div_ceil(2), written: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        let room = self.half.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        self.tail.drain(..self.tail.len().saturating_sub(self.half));
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.left_out() > 0
    }

    fn left_out(&self) -> u64 {
        self.written - self.head.len() as u64 - self.tail.len() as u64
    }

    /// The text, with a line in place of what was left out.
    pub(crate) fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        if !self.is_cut() {
            return String::from_utf8_lossy(&[&self.head, front, back].concat()).into_owned();
        }
        // Half a character at the cut is no character.
        let head = String::from_utf8_lossy(&self.head);
        let tail = [front, back].concat();
        let tail = String::from_utf8_lossy(&tail);
        let (head, tail) = (head.trim_end_matches('\u{fffd}'), tail.trim_start_matches('\u{fffd}'));
        format!("{head}\n[… {} bytes left out …]\n{tail}", self.left_out())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_output_keeps_its_ends() {
        let mut kept = Kept::new(8);
        for piece in ["abc", "def", "ghijklm", "", "no"] {
            kept.push(piece.as_bytes());
        }
        assert_eq!(kept.text(), "abcd\n[… 7 bytes left out …]\nlmno");
        let mut kept = Kept::new(8);
        kept.push("äöüäöü".as_bytes());
        assert_eq!(kept.text(), "äö\n[… 4 bytes left out …]\nöü");
        let mut kept = Kept::new(3);
        kept.push("äöü".as_bytes());
        assert_eq!(kept.text(), "ä\n[… 2 bytes left out …]\nü");
    }

    proptest! {
        #[test]
        fn what_fits_is_kept_whole_and_nothing_grows(pieces in prop::collection::vec(".{0,12}", 0..8), limit in 0_usize..64) {
            let whole = pieces.concat();
            let mut kept = Kept::new(limit);
            pieces.iter().for_each(|piece| kept.push(piece.as_bytes()));
            prop_assert!(kept.head.len() + kept.tail.len() <= limit + 1);
            prop_assert_eq!(kept.is_cut(), whole.len() > 2 * limit.div_ceil(2));
            if !kept.is_cut() {
                prop_assert_eq!(kept.text(), whole);
            }
        }
    }
}
