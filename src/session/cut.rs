//! Where a conversation stood at the end of a round. Pure.

use crate::record::Round;
use crate::segment::{Segment, SegmentKind};

/// How many segments there were at the end of a round: all that were pushed before it ended, what it printed, the answers that
/// its program got from the user, and the replies. What begins something new is none of them: another message, program or
/// goal.
///
/// `Segment::round` is the number of the last round when the segment was pushed, so that a program carries the number before
/// its own.
pub(super) fn segments_until(segments: &[Segment], round: u64) -> usize {
    let begins = segments.partition_point(|segment| segment.round < round);
    let mut replied = false;
    for (at, segment) in segments.iter().enumerate().skip(begins) {
        match segment.kind {
            _ if segment.round > round => return at,
            SegmentKind::Code | SegmentKind::NextGoal => return at,
            SegmentKind::User if replied || at == begins || !is_answer(&segment.content) => return at,
            SegmentKind::Reply => replied = true,
            _ => {}
        }
    }
    segments.len()
}

/// The round that went back behind this one, if there is one: then what was said in it is no more.
pub(super) fn undone_by(rounds: &[Round], number: u64) -> Option<u64> {
    let behind = |round: &&Round| way_back(round).is_some_and(|target| target < number);
    rounds.iter().filter(|round| round.number > number).find(behind).map(|round| round.number)
}

/// What a round is to reach that only goes back.
pub(super) fn goal_of_way_back(round: u64) -> String {
    format!("back to round {round}")
}

/// The round to whose end a round went back that does nothing else.
pub(super) fn way_back(round: &Round) -> Option<u64> {
    let target = round.parents.last().copied().unwrap_or_default();
    (round.hole.is_empty() && round.goal == goal_of_way_back(target)).then_some(target)
}

/// True for what the user answered to a program's question, see `agent/act.rs`.
fn is_answer(content: &str) -> bool {
    content.contains("\n(in answer to: ") && content.ends_with(')')
}

#[cfg(test)]
mod tests {
    use SegmentKind::{Code, NextGoal, Output, Reply, User};
    use jiff::Timestamp;

    use super::*;
    use crate::record::{Outcome, RoundUsage};

    fn conversation(segments: &[(SegmentKind, u64, &str)]) -> Vec<Segment> {
        segments.iter().map(|(kind, round, content)| Segment::new(*kind, *round, *content)).collect()
    }

    /// How many segments there were at the end of rounds 0, 1, 2, …
    fn cuts(segments: &[(SegmentKind, u64, &str)], rounds: u64) -> Vec<usize> {
        let segments = conversation(segments);
        (0..=rounds).map(|round| segments_until(&segments, round)).collect()
    }

    #[test]
    fn a_round_ends_with_its_output_answers_and_replies() {
        let segments = [
            (User, 0, "do it"),
            (Code, 0, "ask()"),
            (Output, 1, "printed"),
            (User, 1, "yes\n(in answer to: sure?)"),
            (User, 1, "two\nlines\n(in answer to: which\none?)"),
            (Reply, 1, "done"),
            (Reply, 1, "really"),
            (User, 1, "more\n(in answer to: nothing, I only write like this)"),
            (Code, 1, "raise"),
            (Output, 2, "error"),
            (NextGoal, 2, "repair it"),
            (Code, 2, "x = 1"),
            (Output, 3, "fine"),
            (Reply, 3, "there"),
        ];
        assert_eq!(cuts(&segments, 5), [0, 7, 10, 14, 14, 14]);
    }

    #[test]
    fn a_round_without_segments_ends_where_the_next_message_begins() {
        let segments =
            [(User, 2, "a message\n(in answer to: x)"), (Code, 2, "x = 1"), (Output, 3, "fine"), (User, 3, "and")];
        assert_eq!(cuts(&segments, 4), [0, 0, 0, 3, 4]);
        assert_eq!(cuts(&[], 2), [0, 0, 0]);
    }

    #[test]
    fn a_given_up_round_keeps_what_was_said_of_it() {
        let segments = [(User, 0, "do"), (Code, 0, "sleep()"), (Output, 1, "Stopped: given up"), (User, 1, "no")];
        assert_eq!(cuts(&segments, 1), [0, 3]);
    }

    #[test]
    fn rounds_behind_a_way_back_are_undone() {
        let round = |number: u64, back: Option<u64>| Round {
            number,
            parents: back.or(number.checked_sub(1)).into_iter().filter(|parent| *parent > 0).collect(),
            goal: back.map_or_else(|| "back to round 1".to_owned(), goal_of_way_back),
            prefix: String::new(),
            hole: if back.is_some() { String::new() } else { "pass".to_owned() },
            suffix: String::new(),
            output: String::new(),
            written: Vec::new(),
            removed: Vec::new(),
            not_kept: Default::default(),
            statements_done: 0,
            outcome: Some(Outcome::Finished { value: None }),
            started_at: Timestamp::UNIX_EPOCH,
            ended_at: None,
            usage: RoundUsage::default(),
            seed: String::new(),
            trace: String::new(),
        };
        let undone = |rounds: &[Round]| (1..=rounds.len() as u64).map(|at| undone_by(rounds, at)).collect::<Vec<_>>();
        let plain = [round(1, None), round(2, None)];
        assert_eq!(undone(&plain), [None, None]);
        let back = [round(1, None), round(2, None), round(3, None), round(4, Some(1)), round(5, None)];
        assert_eq!(undone(&back), [None, Some(4), Some(4), None, None]);
        let twice = [round(1, None), round(2, Some(1)), round(3, None), round(4, Some(0))];
        assert_eq!(undone(&twice), [Some(4), Some(4), Some(4), None]);
    }
}
