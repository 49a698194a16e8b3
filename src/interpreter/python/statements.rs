//! A program's top-level statements, told apart without CPython's tree in Python objects, which takes longer to make than the
//! statements take to compile. What this does not know for certain it leaves to `python/statements.py`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{Alias, Expr, ExprContext, Stmt};
use ruff_text_size::{Ranged, TextSize};

/// Bytes of a program that is read here. What reads it, and drops its tree, is recursive.
const SOURCE: usize = 16 * 1024;

/// Empty lines that stand before all statements together, so that CPython counts their lines as in the program.
const LINES: usize = 100_000;

/// The most levels of an expression.
const DEPTH: u32 = 100;

/// One top-level statement.
#[derive(Debug, PartialEq)]
struct Piece {
    /// Its text, after as many empty lines as there are lines before it.
    text: String,
    /// Its line without its decorators.
    line: u32,
    /// Whether it is an expression.
    has_value: bool,
    /// What it might define; None if that takes its tree to say.
    bindings: Option<Vec<Binding>>,
    /// The names it writes or changes, with the line; a later one of the same name counts.
    stores: Vec<(String, u32)>,
}

/// What may turn out to be a definition once the statement ran.
#[derive(Debug, PartialEq)]
enum Binding {
    /// `name = function(…)` or `name = first.second(…)`.
    Call { name: String, first: String, second: Option<String> },
    /// `name = other`.
    Name { name: String },
    /// `name = a[b]` or `name = a | b`.
    Alias { name: String },
    /// An import: the module after `from` with its dots, and each name with what it is called.
    Import { module: Option<String>, level: u32, names: Vec<(String, Option<String>)> },
}

/// The statements of `source`, each a tuple of its text, its line, whether it has a value, its bindings (tuples, see
/// `observe` in `python/definitions.py`) or None, and a dict of the names that it writes to their lines. None where CPython's
/// own parser has to tell.
#[pyfunction]
pub(super) fn statements<'py>(source: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyList>>> {
    let python = source.py();
    let Some(pieces) = source.to_str().ok().and_then(split) else { return Ok(None) };
    let list = PyList::empty(python);
    for piece in pieces {
        let bindings = piece.bindings.map(|all| {
            let all: PyResult<Vec<_>> = all.into_iter().map(|one| binding(python, one)).collect();
            PyTuple::new(python, all?)
        });
        let stores = PyDict::new(python);
        for (name, line) in piece.stores {
            stores.set_item(PyString::intern(python, &name), line)?;
        }
        list.append((piece.text, piece.line, piece.has_value, bindings.transpose()?, stores))?;
    }
    Ok(Some(list))
}

fn binding(python: Python<'_>, one: Binding) -> PyResult<Bound<'_, PyTuple>> {
    match one {
        Binding::Call { name, first, second } => (name, "call", first, second).into_pyobject(python),
        Binding::Name { name } => (name, "name", python.None(), python.None()).into_pyobject(python),
        Binding::Alias { name } => (name, "alias", python.None(), python.None()).into_pyobject(python),
        Binding::Import { module, level, names } => (module, "import", level, names).into_pyobject(python),
    }
}

fn split(source: &str) -> Option<Vec<Piece>> {
    // CPython knows more than one end of a line, and ruff another one.
    let is_odd = |byte: u8| matches!(byte, b'\r' | b'\x0c' | b'\0');
    if source.len() > SOURCE || source.bytes().any(is_odd) || source.starts_with('\u{feff}') {
        return None;
    }
    let module = ruff_python_parser::parse_module(source).ok()?;
    let ends: Vec<usize> = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
    let mut pieces = Vec::with_capacity(module.suite().len());
    let mut lines = 0;
    for statement in module.suite() {
        let start = statement.start().to_usize();
        let before = ends.partition_point(|end| *end < start);
        // Its columns count from the beginning of its line.
        if start > 0 && source.as_bytes().get(start - 1) != Some(&b'\n') {
            return None;
        }
        lines += before;
        if lines > LINES || matches!(statement, Stmt::ImportFrom(import) if is_future(import.module.as_deref())) {
            return None;
        }
        let mut walk = Walk { ends: &ends, bindings: Some(Vec::new()), stores: Vec::new(), depth: 0, is_lost: false };
        walk.top(statement);
        if walk.is_lost {
            return None;
        }
        let mut text = "\n".repeat(before);
        text.push_str(source.get(statement.range().to_std_range())?);
        let line = match statement {
            Stmt::FunctionDef(function) => walk.line(function.name.start()),
            Stmt::ClassDef(class) => walk.line(class.name.start()),
            other => walk.line(other.start()),
        };
        let has_value = matches!(statement, Stmt::Expr(_));
        pieces.push(Piece { text, line, has_value, bindings: walk.bindings, stores: walk.stores });
    }
    Some(pieces)
}

fn is_future(module: Option<&str>) -> bool {
    module == Some("__future__")
}

/// What of a statement runs in the module's own scope, in the order of CPython's fields: what comes later counts.
struct Walk<'a> {
    ends: &'a [usize],
    bindings: Option<Vec<Binding>>,
    stores: Vec<(String, u32)>,
    depth: u32,
    /// True for what is left to the other half.
    is_lost: bool,
}

impl Walk<'_> {
    fn line(&self, at: TextSize) -> u32 {
        u32::try_from(self.ends.partition_point(|end| *end < at.to_usize()) + 1).unwrap_or(u32::MAX)
    }

    fn top(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Assign(assign) if assign.targets.iter().all(Expr::is_name_expr) => {
                self.assigned(&assign.targets, &assign.value);
                for target in &assign.targets {
                    if let Expr::Name(name) = target {
                        self.store(&name.id, statement.start());
                    }
                }
            }
            other => self.visit_stmt(other),
        }
    }

    fn store(&mut self, name: &str, at: TextSize) {
        let name = self.own(name);
        let line = self.line(at);
        self.stores.push((name, line));
    }

    /// CPython gives names another form where they are not ASCII.
    fn own(&mut self, name: &str) -> String {
        self.is_lost |= !name.is_ascii();
        name.to_owned()
    }

    fn assigned(&mut self, targets: &[Expr], value: &Expr) {
        for target in targets {
            match (target, value) {
                (Expr::Name(name), _) => self.bound(&name.id, value),
                (Expr::Tuple(names), Expr::Tuple(values)) => {
                    for (target, value) in names.elts.iter().zip(&values.elts) {
                        if let Expr::Name(name) = target {
                            self.bound(&name.id, value);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn bound(&mut self, name: &str, value: &Expr) {
        let name = self.own(name);
        let binding = match value {
            Expr::Lambda(_) => {
                self.bindings = None;
                return;
            }
            Expr::Call(call) => match &*call.func {
                Expr::Name(function) => Binding::Call { name, first: self.own(&function.id), second: None },
                Expr::Attribute(function) => {
                    let Expr::Name(module) = &*function.value else { return };
                    let (first, second) = (self.own(&module.id), self.own(function.attr.as_str()));
                    Binding::Call { name, first, second: Some(second) }
                }
                _ => return,
            },
            Expr::Name(_) => Binding::Name { name },
            Expr::Subscript(_) | Expr::BinOp(_) => Binding::Alias { name },
            _ => return,
        };
        if let Some(bindings) = &mut self.bindings {
            bindings.push(binding);
        }
    }

    fn imported(&mut self, module: Option<&str>, level: u32, names: &[Alias], at: TextSize) {
        let module = module.map(|module| self.own(module));
        let mut all = Vec::with_capacity(names.len());
        for alias in names {
            let name = self.own(alias.name.as_str());
            let called = alias.asname.as_ref().map(|called| self.own(called.as_str()));
            let bound = called.as_deref().unwrap_or(name.split('.').next().unwrap_or_default()).to_owned();
            self.store(&bound, at);
            all.push((name, called));
        }
        if let Some(bindings) = &mut self.bindings {
            bindings.push(Binding::Import { module, level, names: all });
        }
    }

    /// `a[1] = 2` and `a.b = 2` write `a`; so may `a.method(…)`.
    fn changed(&mut self, expression: &Expr) {
        let mut root = expression;
        loop {
            root = match root {
                Expr::Attribute(inner) => &inner.value,
                Expr::Subscript(inner) => &inner.value,
                Expr::Name(name) => return self.store(&name.id, name.start()),
                _ => return,
            }
        }
    }
}

impl<'a> SourceOrderVisitor<'a> for Walk<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                self.bindings = None;
                self.store(function.name.as_str(), function.name.start());
            }
            Stmt::ClassDef(class) => {
                self.bindings = None;
                self.store(class.name.as_str(), class.name.start());
            }
            Stmt::Import(import) => self.imported(None, 0, &import.names, import.start()),
            Stmt::ImportFrom(import) => {
                self.imported(import.module.as_deref(), import.level, &import.names, import.start());
            }
            Stmt::Assign(assign) => {
                self.assigned(&assign.targets, &assign.value);
                walk_stmt(self, statement);
            }
            Stmt::AnnAssign(assign) => {
                if let (Expr::Name(name), Some(value)) = (&*assign.target, &assign.value) {
                    self.bound(&name.id, value);
                }
                walk_stmt(self, statement);
            }
            Stmt::TypeAlias(_) => {
                self.bindings = None;
                walk_stmt(self, statement);
            }
            other => walk_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if self.depth > DEPTH {
            self.is_lost = true;
            return;
        }
        match expression {
            Expr::Lambda(_) | Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_) => return,
            Expr::Name(name) if name.ctx != ExprContext::Load => self.store(&name.id, name.start()),
            Expr::Attribute(_) => self.changed(expression),
            Expr::Subscript(inner) if inner.ctx != ExprContext::Load => self.changed(expression),
            _ => {}
        }
        self.depth += 1;
        match expression {
            Expr::If(choice) => {
                for part in [&choice.test, &choice.body, &choice.orelse] {
                    self.visit_expr(part);
                }
            }
            Expr::Dict(dict) => {
                dict.items.iter().filter_map(|item| item.key.as_ref()).for_each(|key| self.visit_expr(key));
                dict.items.iter().for_each(|item| self.visit_expr(&item.value));
            }
            Expr::Call(call) => {
                self.visit_expr(&call.func);
                call.arguments.args.iter().for_each(|argument| self.visit_expr(argument));
                call.arguments.keywords.iter().for_each(|keyword| self.visit_expr(&keyword.value));
            }
            other => walk_expr(self, other),
        }
        self.depth -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(source: &str) -> Vec<(String, u32, bool)> {
        split(source).unwrap().into_iter().map(|piece| (piece.text, piece.line, piece.has_value)).collect()
    }

    fn stores(source: &str) -> Vec<(String, u32)> {
        split(source).unwrap().into_iter().flat_map(|piece| piece.stores).collect()
    }

    #[test]
    fn each_statement_keeps_its_lines() {
        let source =
            "x = 1  # one\n\n@cached\n@other\nasync def f():\n    return 1\nf(\n  1)\nif x:\n    y = 1;\n\n# end\n";
        let expected = [
            ("x = 1", 1, false),
            ("\n\n@cached\n@other\nasync def f():\n    return 1", 5, false),
            ("\n\n\n\n\n\nf(\n  1)", 7, true),
            ("\n\n\n\n\n\n\n\nif x:\n    y = 1", 9, false),
        ];
        assert_eq!(pieces(source), expected.map(|(text, line, has_value)| (text.to_owned(), line, has_value)));
    }

    #[test]
    fn what_only_cpython_can_tell_is_left_to_it() {
        for source in [
            "x = 1; y = 2",
            "from __future__ import annotations\nx: int = 1",
            "x = 1\r\ny = 2",
            "x = 1\n\x0cy = 2",
            "\u{feff}x = 1",
            "größe = 1",
            "größe.x = 1",
            "x = (",
            "  x = 1",
            &format!("x[0] = {}1", "-".repeat(200)),
            &format!("f({}1{})", "[0,".repeat(200), "]".repeat(200)),
            &"x = 1\n".repeat(600),
            &format!("x = '{}'", "a".repeat(SOURCE)),
        ] {
            assert_eq!(split(source), None, "{source:.80}");
        }
        assert_eq!(stores("x = 'größe'"), [("x".to_owned(), 1)]);
    }

    #[test]
    fn names_are_written_where_the_module_itself_runs() {
        let source = "\
a = b.c
d = e[0] = (f := 1)
for g in h:
    i.append([j for j in k])
    del l[0], m
with n as (o, p):
    q = lambda: r
(s.t
 if u.v
 else 0)
w[0].x += 1
import y.z, aa as bb
y[0]
";
        let expected = [
            ("a", 1),
            ("d", 2),
            ("e", 2),
            ("f", 2),
            ("g", 3),
            ("i", 4),
            ("l", 5),
            ("m", 5),
            ("o", 6),
            ("p", 6),
            ("q", 7),
            ("u", 9),
            ("s", 8),
            ("w", 11),
            ("y", 12),
            ("bb", 12),
        ];
        assert_eq!(stores(source), expected.map(|(name, line)| (name.to_owned(), line)));
    }

    #[test]
    fn what_may_be_a_definition_is_named() {
        let bindings = |source: &str| split(source).unwrap().remove(0).bindings;
        let name = || "x".to_owned();
        assert_eq!(bindings("x = [1]"), Some(Vec::new()));
        assert_eq!(bindings("x += f()"), Some(Vec::new()));
        let call = Binding::Call { name: name(), first: "f".to_owned(), second: None };
        assert_eq!(bindings("if 1:\n    x, y = f(), 2"), Some(vec![call]));
        let call = Binding::Call { name: name(), first: "m".to_owned(), second: Some("f".to_owned()) };
        assert_eq!(bindings("x: int = m.f(1)"), Some(vec![call]));
        assert_eq!(bindings("x = m.f.g()"), Some(Vec::new()));
        assert_eq!(bindings("x = y"), Some(vec![Binding::Name { name: name() }]));
        assert_eq!(bindings("x = y | z"), Some(vec![Binding::Alias { name: name() }]));
        let names = vec![("a".to_owned(), None), ("b".to_owned(), Some("c".to_owned()))];
        let import = Binding::Import { module: Some("m.n".to_owned()), level: 1, names };
        assert_eq!(bindings("from .m.n import a, b as c"), Some(vec![import]));
        for whole in ["def x(): pass", "if 1:\n    class x: pass", "x = lambda: 1", "type x = int"] {
            assert_eq!(bindings(whole), None, "{whole}");
        }
    }
}
