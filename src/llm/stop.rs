//! Ends a text at the first of several strings, piece by piece. It does not know where the pieces come from.
//!
//! Servers do this too, but some take only four strings and some hand out control tokens as text.

/// Holds back the end of a text as long as it may be the beginning of a stop string.
pub(super) struct StopFilter {
    stops: Vec<String>,
    held: String,
}

/// What a piece led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Filtered {
    /// Text that may be handed out; more may come.
    Text(String),
    /// The last text: a stop string followed it.
    Last(String),
}

impl StopFilter {
    pub(super) fn new(stops: &[String]) -> Self {
        Self { stops: stops.iter().filter(|stop| !stop.is_empty()).cloned().collect(), held: String::new() }
    }

    pub(super) fn push(&mut self, piece: &str) -> Filtered {
        self.held.push_str(piece);
        if let Some(at) = self.stops.iter().filter_map(|stop| self.held.find(stop.as_str())).min() {
            self.held.truncate(at);
            return Filtered::Last(std::mem::take(&mut self.held));
        }
        let kept = self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - kept);
        Filtered::Text(std::mem::replace(&mut self.held, rest))
    }

    /// What was held back, once nothing more comes.
    pub(super) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Bytes of the longest end of `text` that `stop` begins with.
fn overlap(text: &str, stop: &str) -> usize {
    let longest = text.len().min(stop.len().saturating_sub(1));
    (1..=longest).rev().find(|&length| text.as_bytes().ends_with(&stop.as_bytes()[..length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filter(stops: &[&str], pieces: &[&str]) -> (String, bool) {
        let mut filter = StopFilter::new(&stops.iter().map(ToString::to_string).collect::<Vec<_>>());
        let mut text = String::new();
        for piece in pieces {
            match filter.push(piece) {
                Filtered::Text(piece) => text.push_str(&piece),
                Filtered::Last(piece) => return (text + &piece, true),
            }
        }
        (text + &filter.finish(), false)
    }

    #[test]
    fn the_first_stop_string_ends_the_text_wherever_the_pieces_are_cut() {
        assert_eq!(filter(&["```", "END"], &["a``", "b`", "``c"]), ("a``b".to_owned(), true));
        assert_eq!(filter(&["```", "END"], &["xE", "N", "DONE"]), ("x".to_owned(), true));
        assert_eq!(filter(&["END"], &["xE", "N"]), ("xEN".to_owned(), false));
        assert_eq!(filter(&[""], &["x"]), ("x".to_owned(), false));
    }

    proptest! {
        #[test]
        fn pieces_and_the_whole_text_end_at_the_same_place(text in "[aé`<|]{0,40}", size in 1_usize..5) {
            let letters: Vec<char> = text.chars().collect();
            let pieces: Vec<String> = letters.chunks(size).map(|chunk| chunk.iter().collect()).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let stops = ["``", "<|é", "aa`"];
            let end = stops.iter().filter_map(|stop| text.find(stop)).min();
            let expected = (end.map_or(text.clone(), |end| text[..end].to_owned()), end.is_some());
            prop_assert_eq!(filter(&stops, &pieces), expected);
        }
    }
}
