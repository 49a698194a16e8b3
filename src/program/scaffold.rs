//! The host's part of a program: what stands before the hole and after it. It does not know how a model is asked.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, context};

use super::head::{definition_head, import_lines, stands_alone};
use super::lines::{Line, indent, lines};
use crate::record::{Variable, VariableKind};

/// The host's part of a program. The hole stands between the two, moved right by [`HOLE_INDENT`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scaffold {
    /// All before the hole; ends with a line end.
    pub prefix: String,
    /// All after the hole; ends with a line end.
    pub suffix: String,
    /// Statements of an earlier try that ran and stand in the prefix.
    pub done: Vec<String>,
}

/// Spaces before every line of the hole.
pub const HOLE_INDENT: usize = 4;

/// What a scaffold is made from.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScaffoldInput<'a> {
    /// What the round is to reach: the user's words or the next goal.
    pub goal: &'a str,
    /// All that the session carries.
    pub variables: &'a [Variable],
    /// The most variables to show, see [`Config::max_variables_shown`](super::Config::max_variables_shown).
    pub max_variables_shown: usize,
    /// The top-level statements that ran before the round raised, in order.
    pub done: &'a [String],
    /// The statement that raised.
    pub failed: Option<Failed<'a>>,
}

/// A statement that raised.
#[derive(Debug, Clone, Copy)]
pub struct Failed<'a> {
    /// Its source.
    pub statement: &'a str,
    /// The traceback.
    pub traceback: &'a str,
}

/// Characters of a goal, of a name, and of a type, a preview and half a line of a traceback.
const MAX_GOAL: usize = 200;
const MAX_NAME: usize = 200;
const MAX_PREVIEW: usize = 80;
/// Lines of a failed statement, and the last lines of its traceback.
const MAX_FAILED_LINES: usize = 12;

impl Scaffold {
    /// The scaffold of a round.
    pub fn new(input: &ScaffoldInput<'_>) -> Self {
        let (variables, left_out) = carried_lines(input.variables, input.max_variables_shown);
        let done: Vec<String> = input.done.iter().map(|statement| indent(statement.trim_end(), HOLE_INDENT)).collect();
        let failed = input.failed.map(failed_lines).unwrap_or_default();
        let mut environment = Environment::new();
        if let Ok(syntax) =
            SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build()
        {
            environment.set_syntax(syntax);
        }
        let context =
            context! { variables, left_out, goal => one_line(input.goal, MAX_GOAL), done => done, failed => failed };
        let prefix = environment
            .render_str(include_str!("../../prompts/scaffold.py.j2"), context)
            // The template is part of the program; if it were broken, every test of this file would fail.
            .unwrap_or_else(|_| format!("# goal: {}\ntry:\n", one_line(input.goal, MAX_GOAL)));
        Self { prefix, suffix: include_str!("../../prompts/scaffold_suffix.py").to_owned(), done: input.done.to_vec() }
    }
}

/// The variables as lines of Python, newest first, and how many are not shown.
fn carried_lines(variables: &[Variable], most: usize) -> (Vec<String>, usize) {
    let mut newest: Vec<&Variable> = variables.iter().collect();
    newest.sort_by(|one, other| other.round.cmp(&one.round).then_with(|| one.name.cmp(&other.name)));
    let left_out = newest.len().saturating_sub(most);
    (newest.into_iter().take(most).flat_map(carried_lines_of).collect(), left_out)
}

/// What is shown of a variable. Each line stands alone, so that the prefix parses whatever was stored.
fn carried_lines_of(variable: &Variable) -> Vec<String> {
    // Stored text, too, stays on its line.
    let preview = one_line(&variable.preview, MAX_PREVIEW);
    let name = one_line(&variable.name, MAX_NAME);
    let lines = match variable.kind {
        VariableKind::Import => import_lines(&variable.preview).unwrap_or_else(|| vec![preview]),
        VariableKind::Definition => vec![match stored_head(&variable.preview) {
            Some(head) => format!("{head}  # round {}", variable.round),
            None => format!("{name} = ...  # {preview}, round {}", variable.round),
        }],
        VariableKind::Value => {
            let kind = one_line(&variable.type_name, MAX_PREVIEW);
            let kind = if kind.is_empty() { "object" } else { &kind };
            vec![format!("{name}: {kind} = ...  # {preview}, round {}", variable.round)]
        }
    };
    lines.into_iter().map(|line| if stands_alone(&line) { line } else { format!("# {line}") }).collect()
}

/// The head of a definition whose preview is its head, or, as it once was, the first line of its source.
fn stored_head(preview: &str) -> Option<String> {
    definition_head(preview).or_else(|| definition_head(&format!("{preview}\n    ...")))
}

fn failed_lines(failed: Failed<'_>) -> Vec<String> {
    let statement = lines(failed.statement);
    let traceback = lines(failed.traceback.trim_end());
    // The end of a traceback says what happened.
    let skipped = traceback.len().saturating_sub(MAX_FAILED_LINES);
    // Other characters end lines, too, and each line becomes a comment of its own.
    let shown = |character: char| if character.is_control() { ' ' } else { character };
    let text = |line: &Line<'_>| line.text.chars().take(2 * MAX_PREVIEW).map(shown).collect::<String>();
    statement.iter().take(MAX_FAILED_LINES).map(text).chain(traceback.iter().skip(skipped).map(text)).collect()
}

/// At most `most` characters on one line, cut with a mark.
fn one_line(text: &str, most: usize) -> String {
    let separates = |character: char| character.is_whitespace() || character.is_control();
    let line = text.split(separates).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    let head: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, kind: VariableKind, type_name: &str, preview: &str, round: u64) -> Variable {
        Variable {
            name: name.to_owned(),
            kind,
            type_name: type_name.to_owned(),
            preview: preview.to_owned(),
            size: 10,
            hash: String::new(),
            round,
            line: 1,
            references: Vec::new(),
        }
    }

    #[test]
    fn a_first_round_has_a_goal_and_a_try() {
        let scaffold = Scaffold::new(&ScaffoldInput { goal: "say\n  hello", ..ScaffoldInput::default() });
        let expected = Scaffold {
            prefix: "# goal: say hello\ntry:\n".to_owned(),
            suffix: "except Exception as error:\n    report(error)\n".to_owned(),
            done: Vec::new(),
        };
        assert_eq!(scaffold, expected);
    }

    #[test]
    fn variables_are_declared_newest_first_and_bounded() {
        let variables = [
            variable("old", VariableKind::Value, "int", "1", 1),
            variable("services", VariableKind::Value, "list[dict]", "12 items: [{'name': 'nginx'}]", 2),
            variable("json", VariableKind::Import, "module", "import json", 3),
            variable("count", VariableKind::Definition, "function", "def count(rows: list) -> int: ...", 3),
            variable("text", VariableKind::Value, "str", &"x".repeat(200), 4),
        ];
        let input =
            ScaffoldInput { goal: "go on", variables: &variables, max_variables_shown: 4, ..Default::default() };
        let expected = format!(
            "# carried from earlier rounds\n\
             text: str = ...  # {}…, round 4\n\
             def count(rows: list) -> int: ...  # round 3\n\
             import json\n\
             services: list[dict] = ...  # 12 items: [{{'name': 'nginx'}}], round 2\n\
             # and 1 older: await system_toolkit.variables()\n\
             # goal: go on\n\
             try:\n",
            "x".repeat(79)
        );
        assert_eq!(Scaffold::new(&input).prefix, expected);
    }

    #[test]
    fn stored_text_cannot_add_a_line() {
        let variables = [
            variable("a\nb", VariableKind::Value, "int\r\nimport os", "1\u{2028}2\u{85}3\x0b4\x1c5", 1),
            variable("f", VariableKind::Definition, "function", "def f():\n    evil()", 1),
            variable("g", VariableKind::Import, "module", "import g\nimport os", 1),
        ];
        let failed = Failed { statement: "x", traceback: "E: a\rimport b\x0cc" };
        let input = ScaffoldInput {
            goal: "one\ntwo",
            variables: &variables,
            max_variables_shown: 3,
            failed: Some(failed),
            ..Default::default()
        };
        let expected = "# carried from earlier rounds\n\
             # a b: int import os = ...  # 1 2 3 4 5, round 1\n\
             def f(): ...  # round 1\n\
             import g\n\
             import os\n\
             # goal: one two\n\
             try:\n\
             \x20   # this failed and must be written differently:\n\
             \x20   # x\n\
             \x20   # E: a import b c\n";
        assert_eq!(Scaffold::new(&input).prefix, expected);
    }

    #[test]
    fn an_infill_freezes_what_ran_and_shows_what_failed() {
        let done = ["commits = await git_toolkit.log()".to_owned(), "for x in commits:\n    print(x)".to_owned()];
        let failed = Failed { statement: "y = x.nope", traceback: "line 4: y = x.nope\nAttributeError: no `nope`\n" };
        let input = ScaffoldInput { goal: "g", done: &done, failed: Some(failed), ..ScaffoldInput::default() };
        let expected = "# goal: g\n\
            try:\n\
            \x20   # already done, its names are kept:\n\
            \x20   commits = await git_toolkit.log()\n\
            \x20   for x in commits:\n\
            \x20       print(x)\n\
            \x20   # this failed and must be written differently:\n\
            \x20   # y = x.nope\n\
            \x20   # line 4: y = x.nope\n\
            \x20   # AttributeError: no `nope`\n";
        assert_eq!(Scaffold::new(&input).prefix, expected);
    }
}
