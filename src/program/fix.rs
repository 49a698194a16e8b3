//! Small repairs of a program that parses: imports of toolkits, missing imports, the host's own names, a last `return`.
//!
//! Each is one that only one correction is possible for. What may mean two things is left to the checker.

use std::collections::BTreeSet;

use fimble_toolkit::Declaration;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, Expr, Stmt, StmtImportFrom};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::edit::{Edits, line_of, slice};
use super::names::{Names, is_builtin};

/// The scaffold's function, which a hole must not replace.
pub(super) const REPORT: &str = "report";
/// What a variable of that name is called instead.
const RENAMED_REPORT: &str = "the_report";

/// Removes imports of toolkits and of the runtime: they are there without one.
pub(super) fn drop_toolkit_imports(source: &str, body: &[Stmt], toolkits: &[Declaration], edits: &mut Edits) {
    let mut imports = Imports { source, toolkits, edits };
    imports.visit_body(body);
}

/// Renames what the hole itself calls `report`, everywhere in it.
pub(super) fn rename_report(names: &Names, edits: &mut Edits) {
    if !names.binds(REPORT) || names.local.contains(REPORT) {
        return;
    }
    let bound = names.bound.iter().filter(|binding| binding.name == REPORT).map(|binding| binding.range);
    let places: BTreeSet<(TextSize, TextSize)> = bound
        .chain(names.read.get(REPORT).into_iter().flatten().copied())
        .map(|range| (range.start(), range.end()))
        .collect();
    for (start, end) in places {
        edits.replace(TextRange::new(start, end), RENAMED_REPORT);
    }
    edits.say(format!("renamed `{REPORT}`, which is the host's, to `{RENAMED_REPORT}`"));
}

/// Takes `return` from a last top-level statement: its value then is the program's.
pub(super) fn unwrap_last_return(source: &str, body: &[Stmt], edits: &mut Edits) {
    let Some(Stmt::Return(last)) = body.last() else { return };
    match &last.value {
        Some(value) => {
            // What stands between may be a line break in parentheses, which stays.
            let keyword = TextRange::new(last.start(), value.start());
            let kept = slice(source, keyword).strip_prefix("return").unwrap_or_default().trim_start();
            edits.replace(keyword, kept);
        }
        None => edits.replace(last.range(), "pass"),
    }
    edits.say(format!("line {}: took `return` away, as the program is no function", line_of(source, last)));
}

/// Imports of the standard library that the program uses and does not have: one line to stand before it.
pub(super) fn missing_imports(source: &str, names: &Names, is_known: impl Fn(&str) -> bool) -> Option<String> {
    if names.dynamic {
        return None;
    }
    let unknown = names
        .read
        .iter()
        .filter(|(name, _)| !names.anywhere.contains(name.as_str()) && !is_builtin(name) && !is_known(name));
    let mut statements = Vec::new();
    for (name, places) in unknown {
        let after = |range: &TextRange| source.get(range.end().to_usize()..).unwrap_or_default();
        let dotted = places.iter().all(|range| after(range).starts_with('.'));
        let of_itself = places.iter().all(|range| after(range).starts_with(&format!(".{name}")));
        if let Some((_, module)) = MEMBERS.iter().find(|(member, _)| member == name)
            && !(dotted && of_itself)
        {
            statements.push(format!("from {module} import {name}"));
        } else if dotted && MODULES.contains(&name.as_str()) {
            statements.push(format!("import {name}"));
        }
    }
    (!statements.is_empty()).then(|| statements.join("; "))
}

const MODULES: [&str; 34] = [
    "asyncio",
    "base64",
    "calendar",
    "collections",
    "contextlib",
    "copy",
    "csv",
    "datetime",
    "decimal",
    "difflib",
    "enum",
    "fnmatch",
    "functools",
    "hashlib",
    "heapq",
    "html",
    "io",
    "itertools",
    "json",
    "math",
    "operator",
    "os",
    "pathlib",
    "random",
    "re",
    "shlex",
    "statistics",
    "string",
    "sys",
    "textwrap",
    "time",
    "traceback",
    "urllib",
    "uuid",
];

/// Names that only one module of the standard library is known for.
const MEMBERS: [(&str, &str); 22] = [
    ("Counter", "collections"),
    ("OrderedDict", "collections"),
    ("defaultdict", "collections"),
    ("deque", "collections"),
    ("namedtuple", "collections"),
    ("dataclass", "dataclasses"),
    ("datetime", "datetime"),
    ("timedelta", "datetime"),
    ("timezone", "datetime"),
    ("Decimal", "decimal"),
    ("Enum", "enum"),
    ("Fraction", "fractions"),
    ("partial", "functools"),
    ("reduce", "functools"),
    ("chain", "itertools"),
    ("groupby", "itertools"),
    ("Path", "pathlib"),
    ("mean", "statistics"),
    ("median", "statistics"),
    ("Any", "typing"),
    ("Optional", "typing"),
    ("TypedDict", "typing"),
];

struct Imports<'a, 'e> {
    source: &'a str,
    toolkits: &'a [Declaration],
    edits: &'e mut Edits,
}

impl Imports<'_, '_> {
    fn is_toolkit(&self, name: &str) -> bool {
        let is_named = |part: &str| self.toolkits.iter().any(|toolkit| toolkit.name == part);
        name.split('.').any(|part| part == "fimble" || is_named(part)) || name == "toolkits"
    }

    fn is_dropped(&self, alias: &Alias) -> bool {
        let keeps_name = alias.asname.as_ref().is_none_or(|name| self.is_toolkit(name));
        keeps_name && self.is_toolkit(&alias.name)
    }

    /// `from fimble import git_toolkit`, `from toolkits.git_toolkit import *`.
    fn is_dropped_from(&self, import: &StmtImportFrom) -> bool {
        let module = import.module.as_ref().map(|module| module.as_str()).unwrap_or_default();
        self.is_toolkit(module) || import.names.iter().all(|alias| self.is_dropped(alias))
    }

    fn drop(&mut self, statement: &Stmt, kept: &[&str]) {
        let text = if kept.is_empty() { "pass".to_owned() } else { format!("import {}", kept.join(", ")) };
        self.edits.replace(statement.range(), text);
        let line = line_of(self.source, statement);
        self.edits.say(format!("line {line}: took an import away, as the toolkits are there without one"));
    }
}

impl<'a> Visitor<'a> for Imports<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) if import.names.iter().any(|alias| self.is_dropped(alias)) => {
                let kept = import.names.iter().filter(|alias| !self.is_dropped(alias));
                let kept: Vec<&str> = kept.map(|alias| slice(self.source, alias.range())).collect();
                self.drop(statement, &kept);
            }
            Stmt::ImportFrom(import) if self.is_dropped_from(import) => self.drop(statement, &[]),
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, _: &'a Expr) {}
}
