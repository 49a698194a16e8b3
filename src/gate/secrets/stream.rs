//! Masks a text that comes in pieces: what is shown is the same wherever it was cut.

use super::{MASK, Secrets};

/// A text on its way, of which the end is held back as long as it may be the beginning of a secret.
#[derive(Debug)]
pub struct MaskedStream {
    secrets: Secrets,
    /// What is held back.
    held: String,
    /// How many bytes of it belong to a secret whose mask was shown.
    covered: usize,
}

impl MaskedStream {
    /// The beginning of a text.
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets, held: String::new(), covered: 0 }
    }

    /// What can be shown once `piece` has come; may be empty.
    pub fn push(&mut self, piece: &str) -> String {
        let mask = self.secrets.current();
        if mask.is_empty() && self.held.is_empty() {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        let end = mask.open_end(&self.held);
        self.show(end)
    }

    /// What is left when the text has ended.
    pub fn finish(&mut self) -> String {
        self.show(self.held.len())
    }

    /// Shows what stands before `end`, and holds back the rest.
    fn show(&mut self, end: usize) -> String {
        let text = std::mem::take(&mut self.held);
        let mut shown = String::with_capacity(end);
        let (mut at, covered) = (0, self.covered);
        for span in self.secrets.current().spans(&text, covered) {
            if span.start >= end {
                break;
            }
            shown.push_str(text.get(at..span.start).unwrap_or_default());
            // The mask of one that began before this text was shown then.
            if covered == 0 || span.start > 0 {
                shown.push_str(MASK);
            }
            at = span.end;
        }
        shown.push_str(text.get(at..end).unwrap_or_default());
        // Where nothing could be shown, what was covered still is.
        self.covered = at.max(covered).saturating_sub(end);
        self.held = text.get(end..).unwrap_or_default().to_owned();
        shown
    }
}
