//! What of a conversation fits: long outputs keep their head and tail, the oldest segments go first.

use crate::segment::{Segment, SegmentKind, estimate_tokens};

/// Segments are left out in steps of so many, so that the prompt's head changes seldom.
const STEP: usize = 8;

/// The segments that are shown, and how many are not.
#[derive(Debug, PartialEq)]
pub(super) struct Kept<'a> {
    /// In order.
    pub(super) segments: Vec<&'a Segment>,
    /// How many older ones were left out.
    pub(super) left_out: usize,
}

/// The newest segments that fit into `budget` tokens, where one takes `tokens` and `earlier` ones are left out already.
/// Pinned ones and the last of the user are always there, also if they do not fit.
pub(super) fn keep<'a>(
    segments: &'a [Segment],
    earlier: usize,
    budget: u32,
    tokens: impl Fn(&Segment) -> u32,
) -> Kept<'a> {
    let last_user = segments.iter().rposition(|segment| segment.kind == SegmentKind::User);
    let is_fixed = |index: usize, segment: &Segment| segment.pinned || Some(index) == last_user;
    let tokens: Vec<u64> = segments.iter().map(|segment| u64::from(tokens(segment))).collect();
    let mut total: u64 = tokens.iter().sum();
    // The steps are those of the whole conversation.
    let mut dropped = ((STEP - earlier % STEP) % STEP).min(segments.len());
    let costs = |range: std::ops::Range<usize>| -> u64 {
        range.filter(|index| !is_fixed(*index, &segments[*index])).map(|index| tokens[index]).sum()
    };
    total -= costs(0..dropped);
    while total > u64::from(budget) && dropped < segments.len() {
        let next = (dropped + STEP).min(segments.len());
        total -= costs(dropped..next);
        dropped = next;
    }
    let kept = segments.iter().enumerate().filter(|(index, segment)| *index >= dropped || is_fixed(*index, segment));
    let kept: Vec<&Segment> = kept.map(|(_, segment)| segment).collect();
    Kept { left_out: earlier.saturating_add(segments.len() - kept.len()), segments: kept }
}

/// The newest segments that take `tokens` in all, where one takes `of`, and with them the pinned ones and the last of the
/// user; and how many are left out. A conversation that is longer than any context is not gone through in whole.
pub(super) fn newest(segments: &[Segment], tokens: u64, of: impl Fn(&Segment) -> u32) -> (Vec<&Segment>, usize) {
    let mut total = 0;
    let fits = |segment: &&Segment| {
        let is_first_over = total < tokens;
        total += u64::from(of(segment));
        is_first_over
    };
    let begins = segments.len() - segments.iter().rev().take_while(fits).count();
    let (old, new) = segments.split_at(begins);
    let is_user = |segment: &Segment| segment.kind == SegmentKind::User;
    let last_user = if new.iter().any(is_user) { None } else { old.iter().rposition(is_user) };
    let fixed = old.iter().enumerate().filter(|(index, segment)| segment.pinned || Some(*index) == last_user);
    let newest: Vec<&Segment> = fixed.map(|(_, segment)| segment).chain(new).collect();
    let left_out = segments.len() - newest.len();
    (newest, left_out)
}

/// The text, or its head and tail with a mark between, in about `most` tokens.
pub(super) fn bounded(text: &str, most: u32) -> String {
    let tokens = estimate_tokens(text);
    if tokens <= most {
        return text.to_owned();
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let share = text.len().saturating_mul(most) / usize::try_from(tokens).unwrap_or(1).max(1);
    // What a program printed first says what it is, what it printed last how it ended.
    let head = floor(text, share * 2 / 3);
    let tail = ceiling(text, text.len() - share / 3);
    let cut = text.get(head..tail).unwrap_or_default();
    let lines = cut.matches('\n').count();
    format!(
        "{}\n… {} characters in {lines} lines left out …\n{}",
        text[..head].trim_end(),
        cut.chars().count(),
        text[tail..].trim_start_matches('\n')
    )
}

/// The last line end at or before a place, or the place itself if its line is long.
fn floor(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    match text[..at].rfind('\n') {
        Some(end) if at - end < 200 => end,
        _ => at,
    }
}

fn ceiling(text: &str, at: usize) -> usize {
    let at = text.ceil_char_boundary(at);
    match text[at..].find('\n') {
        Some(end) if end < 200 => at + end,
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(count: u64) -> Vec<Segment> {
        let kinds = [SegmentKind::User, SegmentKind::Code, SegmentKind::Output];
        let numbered = (0..count).zip(kinds.into_iter().cycle());
        numbered.map(|(id, kind)| Segment { id, ..Segment::new(kind, 1, "text") }).collect()
    }

    #[test]
    fn the_oldest_go_first_in_steps_and_the_users_last_word_stays() {
        let mut segments = segments(30);
        segments[2].pinned = true;
        let kept = |budget: u32| {
            let kept = keep(&segments, 0, budget, |_| 1);
            (kept.segments.iter().map(|segment| segment.id).collect::<Vec<_>>(), kept.left_out)
        };
        assert_eq!(kept(30), ((0..30).collect(), 0));
        let expected: Vec<u64> = [2].into_iter().chain(8..30).collect();
        assert_eq!(kept(29), (expected.clone(), 7));
        assert_eq!(kept(23), (expected, 7));
        assert_eq!(kept(1), (vec![2, 27], 28));
    }

    #[test]
    fn what_is_left_out_does_not_depend_on_how_much_was_looked_at() {
        let mut segments = segments(60);
        segments[2].pinned = true;
        for budget in 1..60_u32 {
            let whole = keep(&segments, 0, budget, |_| 1);
            for looked_at in [u64::from(budget), 60] {
                let (newest, earlier) = newest(&segments, looked_at, |_| 1);
                let newest: Vec<Segment> = newest.into_iter().cloned().collect();
                let kept = keep(&newest, earlier, budget, |_| 1);
                assert_eq!((kept.segments, kept.left_out), (whole.segments.clone(), whole.left_out), "{budget}");
            }
        }
    }

    #[test]
    fn a_long_text_keeps_its_head_and_tail() {
        let text: String = (0..1000).map(|number| format!("line {number}\n")).collect();
        let bounded = bounded(&text, 30);
        let expected = "line 0\nline 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\nline 9\nline 10\n\
            … 8776 characters in 985 lines left out …\nline 996\nline 997\nline 998\nline 999\n";
        assert_eq!(bounded, expected);
        assert_eq!(super::bounded("short", 30), "short");
    }
}
