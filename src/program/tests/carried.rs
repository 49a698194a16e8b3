//! What the scaffold shows of what earlier rounds left: whatever that was, the head of the program is Python.

use ruff_python_ast::Stmt;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_text_size::{Ranged, TextRange};

use super::*;

/// A variable whose source is `source`, as a round stores it now.
fn kept(name: &str, kind: VariableKind, source: &str) -> Variable {
    let first_line = source.lines().next().unwrap_or_default();
    variable(name, kind, &head(kind, source).unwrap_or_else(|| cut(first_line)), &[])
}

/// As rounds stored it when only a first line was kept.
fn kept_once(name: &str, kind: VariableKind, source: &str) -> Variable {
    let mut lines = source.lines().filter(|line| *line != "if True:" && !line.trim_start().starts_with('@'));
    let shown = match kind {
        VariableKind::Import => lines.collect::<Vec<_>>().join(" "),
        _ => lines.next().unwrap_or_default().trim().to_owned(),
    };
    variable(name, kind, &cut(&shown), &[])
}

fn cut(text: &str) -> String {
    if text.chars().count() <= 120 { text.to_owned() } else { text.chars().take(119).chain(['…']).collect() }
}

/// The lines about what is carried. Asserts that they parse, and that an ordinary hole is accepted after them.
fn shown(carried: &[Variable]) -> Vec<String> {
    let input =
        ScaffoldInput { goal: "go on", variables: carried, max_variables_shown: usize::MAX, ..Default::default() };
    let scaffold = Scaffold::new(&input);
    let program = format!("{}    pass\n{}", scaffold.prefix, scaffold.suffix);
    if let Err(error) = ruff_python_parser::parse_module(&program) {
        panic!("{error}:\n{program}");
    }
    let config = Config::default();
    let known = Known {
        declarations: &[],
        carried,
        shapes: &NO_SHAPES,
        not_kept: &NOTHING_LOST,
        finish_length: false,
        config: &config,
    };
    assert_eq!(splice(&scaffold, "y = 2\nprint(y)", &known).unwrap().hole, "y = 2\nprint(y)\n", "{program}");
    let lines = scaffold.prefix.lines().skip(1).take_while(|line| !line.starts_with("# goal"));
    lines.map(str::to_owned).collect()
}

#[test]
fn every_kind_of_definition_has_a_line_that_is_python() {
    use VariableKind::{Definition, Import};
    let long = format!("def long({}): return 1", ["parameter: dict[str, list[int]] = None"; 4].join(", "));
    let rows = [
        ("f", Definition, "def f(x): return x", "def f(x): ...  # round 1"),
        ("f", Definition, "def f(x): # comment\n    return x", "def f(x): ...  # round 1"),
        ("f", Definition, "async def f(\n    a,\n    b=1,\n):\n    return a", "async def f(a, b=1,): ...  # round 1"),
        ("f", Definition, "@cache\ndef f(x):\n    return x", "def f(x): ...  # round 1"),
        ("C", Definition, "@dataclass(frozen=True)\nclass C(Base): x: int = 1", "class C(Base): ...  # round 1"),
        ("g", Definition, "g = lambda x: x + 1", "g = ...  # g = lambda x: x + 1, round 1"),
        ("Al", Definition, "Al = list[int]", "Al = ...  # Al = list[int], round 1"),
        ("Row", Definition, "type Row = dict[str, int]", "Row = ...  # type Row = dict[str, int], round 1"),
        ("NT", Definition, "NT = namedtuple(\"NT\",\n    \"a b\")", "NT = ...  # NT = namedtuple(\"NT\",, round 1"),
        (
            "long",
            Definition,
            &long,
            "def long(parameter=..., parameter=..., parameter=..., parameter=...): ...  # round 1",
        ),
        ("os", Import, "import os\nimport os.path", "import os\nimport os.path"),
        ("d", Import, "from a import b as d", "from a import b as d"),
    ];
    for (name, kind, source, expected) in rows {
        let expected: Vec<&str> = expected.lines().collect();
        assert_eq!(shown(&[kept(name, kind, source)]), expected, "{source}");
        shown(&[kept_once(name, kind, source)]);
    }
    let all: Vec<Variable> = rows.iter().map(|(name, kind, source, _)| kept(name, *kind, source)).collect();
    assert_eq!(shown(&all).len(), rows.len() + 1);
}

#[test]
fn what_was_stored_once_is_shown_as_far_as_it_can_be_read() {
    use VariableKind::{Definition, Import, Value};
    let rows = [
        ("f", Definition, "def f(x):", "def f(x): ...  # round 1"),
        ("f", Definition, "def f(x): # comment", "def f(x): ...  # round 1"),
        ("f", Definition, "def f(x): return x", "def f(x): ...  # round 1"),
        ("long", Definition, "def long(a,", "long = ...  # def long(a,, round 1"),
        ("f", Definition, "def f(x): return x + …", "f = ...  # def f(x): return x + …, round 1"),
        ("os", Import, "import os import os.path", "# import os import os.path"),
        ("v", Value, "[]", "v: list = ...  # [], round 1"),
        ("v w", Value, "[]", "# v w: list = ...  # [], round 1"),
    ];
    for (name, kind, preview, expected) in rows {
        assert_eq!(shown(&[variable(name, kind, preview, &[])]), [expected]);
    }
}

#[test]
fn a_prefix_that_is_no_program_is_not_the_holes_fault() {
    let broken = Scaffold { prefix: format!("def f(: ...\n{}", scaffold().prefix), ..scaffold() };
    let (carried, config) = (carried(), Config::default());
    let known = Known {
        declarations: &[],
        carried: &carried,
        shapes: &NO_SHAPES,
        not_kept: &NOTHING_LOST,
        finish_length: false,
        config: &config,
    };
    assert_eq!(splice(&broken, "y = 2", &known).unwrap().hole, "y = 2\n");
    // What leaves the `try` is refused as ever.
    let leaves = "y = 2\nexcept ValueError:\n    pass\nz = 3";
    assert_eq!(splice(&broken, leaves, &known), splice(&scaffold(), leaves, &known));
    assert!(splice(&broken, leaves, &known).is_err());
}

/// All that could be carried, with the source that a round would keep.
struct Sources<'a> {
    source: &'a str,
    kept: Vec<(String, VariableKind, String)>,
}

impl Sources<'_> {
    fn take(&mut self, name: &str, kind: VariableKind, range: TextRange) {
        let (start, end) = (range.start().to_usize(), range.end().to_usize());
        let line = self.source[..start].rfind('\n').map_or(0, |end| end + 1);
        let text = match self.source[line..start].trim() {
            "" if line < start => format!("if True:\n{}", &self.source[line..end]),
            _ => self.source[start..end].to_owned(),
        };
        let text = if kind == VariableKind::Import { self.source[start..end].to_owned() } else { text };
        self.kept.push((name.to_owned(), kind, text));
    }
}

impl<'a> Visitor<'a> for Sources<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let range = statement.range();
        match statement {
            Stmt::FunctionDef(function) => self.take(&function.name, VariableKind::Definition, range),
            Stmt::ClassDef(class) => self.take(&class.name, VariableKind::Definition, range),
            Stmt::Assign(assign) => {
                if let [ruff_python_ast::Expr::Name(name)] = assign.targets.as_slice() {
                    self.take(&name.id, VariableKind::Definition, range);
                }
            }
            Stmt::Import(_) | Stmt::ImportFrom(_) => self.take("module", VariableKind::Import, range),
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }
}

#[test]
fn whatever_the_conformance_programs_define_can_be_carried() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interpreter/conformance");
    let mut heads = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let source = std::fs::read_to_string(&path).unwrap();
        let module = ruff_python_parser::parse_module(&source).unwrap();
        let mut sources = Sources { source: &source, kept: Vec::new() };
        sources.visit_body(module.suite());
        let mut all = Vec::new();
        for (name, kind, text) in &sources.kept {
            let variable = kept(name, *kind, text);
            for line in shown(std::slice::from_ref(&variable)) {
                assert!(!line.starts_with('#'), "{}: {line}\nof: {text}", path.display());
                heads += usize::from(line.contains("def ") || line.starts_with("class "));
            }
            shown(&[kept_once(name, *kind, text)]);
            all.push(variable);
        }
        shown(&all);
    }
    assert!(heads > 200, "{heads}");
}
