//! What a traceback says at one glance: the class of its exception, and the line with the exception itself.

use crate::record::Outcome;

/// The class of the exception that ended a round, without its module; `None` if none did. Rounds that were stored without it are
/// known by their traceback.
pub fn exception_class(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Raised { traceback, exception, .. } if exception.is_empty() => Some(class_in(traceback)),
        Outcome::Raised { exception, .. } => Some(exception),
        _ => None,
    }
}

/// The line of a round's traceback that names its exception, e.g. `KeyError: 'a'`; `None` if no exception ended it. Notes, values
/// of names and the members of a group may follow it in the traceback, and causes come before it.
pub fn exception_line(outcome: &Outcome) -> Option<&str> {
    let Outcome::Raised { traceback, .. } = outcome else { return None };
    let class = exception_class(outcome)?;
    let lines: Vec<&str> = traceback.lines().collect();
    let names_it = |line: &&str| own(line).is_some_and(|head| last_part(head) == class);
    let begins = |line: &str| line.ends_with("Traceback (most recent call last):") && !line.starts_with("    ");
    let begun = (0..lines.len()).rev().filter(|number| begins(lines[*number]));
    let in_block = begun.filter_map(|number| lines[number..].iter().copied().find(names_it)).next();
    let found = in_block.or_else(|| lines.iter().rev().copied().find(names_it));
    let found = found.or_else(|| lines.iter().rev().copied().find(|line| !line.trim().is_empty()));
    Some(found.map_or(class, outer))
}

/// The class of the exception that a traceback ends with. Notes and values of names may follow its line.
fn class_in(traceback: &str) -> &str {
    let class = traceback.lines().rev().filter_map(own).find(|head| last_part(head).starts_with(char::is_uppercase));
    class.map_or("exception", last_part)
}

/// What stands before the colon of a line that may name an exception.
fn own(line: &str) -> Option<&str> {
    let is_part = |part: &str| {
        part == "<locals>"
            || part.starts_with(|first: char| first.is_alphabetic() || first == '_')
                && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    // What is quoted of the program is indented.
    let head = outer(line).split_once(':').map_or(outer(line), |(head, _)| head);
    head.split('.').all(is_part).then_some(head)
}

/// A line without the mark of the outermost group of exceptions.
fn outer(line: &str) -> &str {
    line.strip_prefix("  | ").unwrap_or(line)
}

fn last_part(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raised(exception: &str, traceback: &str) -> Outcome {
        Outcome::Raised { traceback: traceback.to_owned(), statement: 1, exception: exception.to_owned() }
    }

    #[test]
    fn the_line_of_the_exception_is_found_whatever_stands_around_it() {
        let head = "Traceback (most recent call last):\n  File \"program\", line 1, in <module>\n    x['a']\n";
        let group = "  + Exception Group Traceback (most recent call last):\n  |   File \"program\", line 1, in <module>\n\
            \x20 |     go()\n  | ExceptionGroup: two failed (2 sub-exceptions)\n\
            \x20 +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n\
            \x20   | ValueError: one\n    +---------------- 2 ----------------\n    | KeyError: 'two'\n\
            \x20   +------------------------------------\nwhere tasks = [1]";
        let rows = [
            ("KeyError", format!("{head}KeyError: 'a'\nwhere rec = {{'b': 1}}"), "KeyError: 'a'"),
            ("KeyError", format!("{head}KeyError: 'a'\nNote: see the log\nhint: look"), "KeyError: 'a'"),
            (
                "JSONDecodeError",
                format!("{head}json.decoder.JSONDecodeError: no\nhint: x"),
                "json.decoder.JSONDecodeError: no",
            ),
            ("Mine", format!("{head}make.<locals>.Mine"), "make.<locals>.Mine"),
            ("KeyError", format!("{head}ValueError: 1\n\nDuring handling:\n\n{head}KeyError: 2"), "KeyError: 2"),
            (
                "ValueError",
                format!("{head}ValueError: of a worker:\nTraceback (most recent call last):\nKeyError: 1"),
                "ValueError: of a worker:",
            ),
            ("ValueError", format!("{head}ValueError: two lines\nValueError: no"), "ValueError: two lines"),
            ("ExceptionGroup", group.to_owned(), "ExceptionGroup: two failed (2 sub-exceptions)"),
            ("Odd", format!("{head}Odd (its message\nlast"), "last"),
            ("Odd", String::new(), "Odd"),
        ];
        for (exception, traceback, expected) in rows {
            assert_eq!(exception_line(&raised(exception, &traceback)), Some(expected), "{traceback}");
            assert_eq!(exception_class(&raised(exception, &traceback)), Some(exception));
        }
        assert_eq!(exception_class(&raised("", group)), Some("ExceptionGroup"));
        assert_eq!(exception_line(&raised("", group)), Some("ExceptionGroup: two failed (2 sub-exceptions)"));
        assert_eq!(exception_class(&raised("", "where x = 1")), Some("exception"));
        assert_eq!(exception_line(&Outcome::Finished { value: None }), None);
    }

    #[test]
    fn a_round_that_was_stored_without_its_exception_is_read() {
        let stored = r#"{"kind": "raised", "traceback": "KeyError: 'a'\nwhere b = 1", "statement": 2}"#;
        let outcome: Outcome = serde_json::from_str(stored).unwrap();
        assert_eq!((exception_class(&outcome), exception_line(&outcome)), (Some("KeyError"), Some("KeyError: 'a'")));
    }
}
