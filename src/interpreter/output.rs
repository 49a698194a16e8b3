//! A program's output, kept to a limit: its head and its tail, and a mark of what was cut between.

use std::collections::VecDeque;

/// Output as it arrives.
#[derive(Debug)]
pub(super) struct Output {
    head: String,
    tail: VecDeque<String>,
    tail_bytes: usize,
    limit: usize,
    total: u64,
    full: bool,
}

impl Output {
    /// Keeps `limit` bytes: the first three quarters and the last quarter.
    pub fn new(limit: usize) -> Self {
        Self { head: String::new(), tail: VecDeque::new(), tail_bytes: 0, limit, total: 0, full: false }
    }

    /// All bytes that were printed.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Takes a piece. Answers what of it goes to those who watch: what fits, once the mark, then nothing.
    pub fn push<'a>(&mut self, text: &'a str) -> (&'a str, bool) {
        self.total += text.len() as u64;
        let mut shown = "";
        let mut rest = text;
        if !self.full {
            let space = (self.limit - self.limit / 4).saturating_sub(self.head.len());
            let (fits, surplus) = text.split_at(text.floor_char_boundary(space));
            self.head.push_str(fits);
            shown = fits;
            rest = surplus;
        }
        if rest.is_empty() {
            return (shown, false);
        }
        let first = !std::mem::replace(&mut self.full, true);
        let keep = self.limit / 4;
        let start = rest.ceil_char_boundary(rest.len().saturating_sub(keep));
        let kept = rest.get(start..).unwrap_or_default();
        self.tail_bytes += kept.len();
        self.tail.push_back(kept.to_owned());
        while let Some(oldest) = self.tail.front() {
            if self.tail_bytes - oldest.len() < keep {
                break;
            }
            self.tail_bytes -= oldest.len();
            self.tail.pop_front();
        }
        (shown, first)
    }

    /// The text with its mark.
    pub fn finish(self) -> String {
        let mut text = self.head;
        if !self.full {
            return text;
        }
        let tail: String = self.tail.into_iter().collect();
        let start = tail.ceil_char_boundary(tail.len().saturating_sub(self.limit / 4));
        let tail = tail.get(start..).unwrap_or_default();
        let cut = self.total.saturating_sub((text.len() + tail.len()) as u64);
        if cut > 0 {
            text.push_str(&mark(cut));
        }
        text.push_str(tail);
        text
    }
}

/// What those who watch see in place of the rest.
pub(super) const CUT: &str = "\n[… more output is not shown: print less, or a part of it …]\n";

fn mark(bytes: u64) -> String {
    format!("\n[… {bytes} bytes of output were cut here: print less, or a part of it …]\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_kept_whole() {
        let mut output = Output::new(16);
        assert_eq!(output.push("hello "), ("hello ", false));
        assert_eq!(output.push("wörld"), ("wörld", false));
        assert_eq!(output.finish(), "hello wörld");
    }

    #[test]
    fn head_and_tail_are_kept_with_a_mark_of_what_was_cut() {
        let mut output = Output::new(8);
        assert_eq!(output.push("abcdefgh"), ("abcdef", true));
        for piece in ["ijkl", "mn", "op"] {
            assert_eq!(output.push(piece), ("", false));
        }
        assert_eq!(output.total(), 16);
        assert_eq!(output.finish(), format!("abcdef{}op", mark(8)));
    }

    #[test]
    fn characters_are_never_split() {
        let mut output = Output::new(8);
        assert_eq!(output.push("ééééééééé"), ("ééé", true));
        assert_eq!(output.finish(), format!("ééé{}é", mark(10)));
    }

    #[test]
    fn many_small_pieces_keep_the_tail_short() {
        let mut output = Output::new(400);
        for _ in 0..100_000 {
            output.push("x");
        }
        assert!(output.tail.len() <= 101, "{}", output.tail.len());
        assert_eq!(output.finish(), format!("{}{}{}", "x".repeat(300), mark(99_600), "x".repeat(100)));
    }
}
