//! Tells while the model still writes that its hole has ended, so that no token is waited for in vain.

use super::lines::{LineKind, lines};
use super::repair::handler_start;

/// Comment lines in a row after which a model is known to write nothing else.
const MAX_COMMENT_LINES: usize = 8;
/// Equal lines in a row after which a model is known to repeat itself for ever.
const MAX_EQUAL_LINES: usize = 6;

/// Where the hole ends, in bytes, if the text that was written so far already goes beyond it.
///
/// Only lines that are complete count. The hole ends with a line that leaves its level, a fence that closes, an
/// `except` of no `try`, or a model that writes comment after comment or the same line again and again.
pub fn hole_end(text: &str) -> Option<usize> {
    // The last line may still grow.
    let complete = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    [fence_end(complete), level_end(complete), endless(complete)].into_iter().flatten().min()
}

/// True if the text goes beyond the hole: the generation can be stopped.
pub fn is_complete(text: &str) -> bool {
    hole_end(text).is_some()
}

fn fence_end(text: &str) -> Option<usize> {
    let mut fences = lines(text).into_iter().filter(|line| line.text.trim_start().starts_with("```"));
    let opening = fences.next()?;
    let closing = fences.next()?;
    // Prose may stand before a fence, code may not: there it belongs to a string.
    let before = &text[..opening.start];
    let is_outside = before.lines().all(|line| line.trim().is_empty() || !line.starts_with(' ') && !line.contains('('));
    is_outside.then_some(closing.start + closing.text.len())
}

fn level_end(text: &str) -> Option<usize> {
    if text.trim_start().starts_with("```") {
        return None;
    }
    let all = lines(text);
    let level = all.iter().find(|line| line.kind == LineKind::Code)?;
    let left = all.iter().find(|line| {
        line.start > level.start
            && line.indent() < level.indent()
            // A comment at the left margin may be a slip; one that begins the next turn is not.
            && (line.kind == LineKind::Code || line.kind == LineKind::Comment && line.indent() == 0)
    });
    let handler = handler_start(text);
    [left.map(|line| line.start), handler].into_iter().flatten().min()
}

fn endless(text: &str) -> Option<usize> {
    let all = lines(text);
    let mut comments = 0;
    let mut equal = 0;
    let mut previous = None;
    for line in &all {
        comments = match line.kind {
            LineKind::Comment => comments + 1,
            LineKind::Blank => comments,
            _ => 0,
        };
        equal = if previous == Some(line.text) && !line.text.trim().is_empty() { equal + 1 } else { 0 };
        previous = Some(line.text);
        if comments > MAX_COMMENT_LINES || equal >= MAX_EQUAL_LINES {
            return Some(line.start);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_ends_where_its_level_is_left() {
        let text = "    x = 1\n    for a in b:\n        print(a)\n";
        assert_eq!(hole_end(text), None);
        for beyond in ["except Exception as error:\n", "y = 2\n", "# user: next\n", "class Foo:\n"] {
            assert_eq!(hole_end(&format!("{text}\n{beyond}")), Some(text.len() + 1), "{beyond}");
        }
        // A line that is not complete may still be anything.
        assert_eq!(hole_end(&format!("{text}except Exception")), None);
    }

    #[test]
    fn strings_and_brackets_do_not_end_a_hole() {
        let text = "    x = '''\nexcept\n'''\n    y = [\n1,\n]\n    try:\n        pass\n    except E:\n        pass\n";
        assert_eq!(hole_end(text), None);
    }

    #[test]
    fn a_closed_fence_ends_a_hole() {
        let text = "Here is the code:\n```python\nx = 1\n";
        assert_eq!(hole_end(text), None);
        assert_eq!(hole_end(&format!("{text}```\nThis sets x.\n")), Some(text.len() + 3));
        assert_eq!(hole_end("```python\nx = 1\ny = '''\n"), None);
    }

    #[test]
    fn endless_comments_and_repetition_end_a_hole() {
        let comments: String = (0..MAX_COMMENT_LINES).map(|number| format!("    # thought {number}\n")).collect();
        assert_eq!(hole_end(&comments), None);
        assert_eq!(hole_end(&format!("{comments}    # more\n")), Some(comments.len()));
        let lines = "    print(1)\n".repeat(MAX_EQUAL_LINES);
        assert_eq!(hole_end(&lines), None);
        assert_eq!(hole_end(&format!("{lines}    print(1)\n")), Some(lines.len()));
    }
}
