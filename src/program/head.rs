//! What a reader sees of the source of a definition or an import: the head, which parses by itself and stands on one line.
//!
//! It does not know where it is shown.

use ruff_python_ast::token::{TokenKind, Tokens};
use ruff_python_ast::{Expr, Identifier, ParameterWithDefault, Parameters, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::splice::on_large_stack;
use crate::record::VariableKind;

/// Characters of the head of a function or class; a longer one loses its annotations and defaults first.
const MAX_HEAD: usize = 160;
/// Characters of all imports together.
const MAX_IMPORTS: usize = 400;
/// Bytes of a source that is parsed.
const MAX_SOURCE: usize = 256 * 1024;

/// What is shown of a carried name's source: `async def f(x: int) -> str: ...`, `class C(Base): ...`, or its imports with `; `
/// between them. `None` for a value, for a definition that is an assignment, and for what does not parse.
pub fn head(kind: VariableKind, source: &str) -> Option<String> {
    match kind {
        VariableKind::Value => None,
        VariableKind::Definition => definition_head(source),
        VariableKind::Import => {
            let mut shown = String::new();
            for line in import_lines(source)? {
                if shown.chars().count() + line.chars().count() + 2 > MAX_IMPORTS {
                    break;
                }
                shown.push_str(if shown.is_empty() { "" } else { "; " });
                shown.push_str(&line);
            }
            (!shown.is_empty()).then_some(shown)
        }
    }
}

/// The head of the function or class that a source ends with, without its decorators.
pub(super) fn definition_head(source: &str) -> Option<String> {
    parsed(source, |tokens, body| {
        let mut last = body.last()?;
        // A definition that stood in a block is kept with an `if True:` around it.
        while let Stmt::If(block) = last {
            last = block.body.last()?;
        }
        match last {
            Stmt::FunctionDef(function) => function_head(source, tokens, function),
            Stmt::ClassDef(class) => class_head(source, tokens, class),
            _ => None,
        }
    })
}

/// Each import of a source that has nothing else, on a line of its own.
pub(super) fn import_lines(source: &str) -> Option<Vec<String>> {
    parsed(source, |tokens, body| {
        let line = |statement: &Stmt| match statement {
            Stmt::Import(_) | Stmt::ImportFrom(_) => one_line(source, tokens, statement.range()),
            _ => None,
        };
        body.iter().map(line).collect()
    })
}

/// True if a line is one statement, whatever stands around it.
pub(super) fn stands_alone(line: &str) -> bool {
    parsed(line, |_, body| (body.len() == 1).then_some(())).is_some()
}

fn parsed<T>(source: &str, read: impl FnOnce(&Tokens, &[Stmt]) -> Option<T>) -> Option<T> {
    if source.len() > MAX_SOURCE {
        return None;
    }
    on_large_stack(source.len(), || {
        let module = ruff_python_parser::parse_module(source).ok()?;
        read(module.tokens(), module.suite())
    })
}

fn function_head(source: &str, tokens: &Tokens, function: &StmtFunctionDef) -> Option<String> {
    let word = if function.is_async { "async def" } else { "def" };
    let signed = function.returns.as_deref().map_or(function.parameters.end(), Expr::end);
    let whole = up_to_colon(source, tokens, &function.name, signed).map(|head| format!("{word} {head}: ..."));
    let short = || format!("{word} {}({}): ...", function.name, names_of(&function.parameters));
    whole.filter(|head| fits(head)).or_else(|| Some(short()).filter(|head| fits(head)))
}

fn class_head(source: &str, tokens: &Tokens, class: &StmtClassDef) -> Option<String> {
    let of_types = class.type_params.as_ref().map_or(class.name.end(), |types| types.end());
    let signed = class.arguments.as_ref().map_or(of_types, |arguments| arguments.end());
    let whole = up_to_colon(source, tokens, &class.name, signed).map(|head| format!("class {head}: ..."));
    let short = || format!("class {}: ...", class.name);
    whole.filter(|head| fits(head)).or_else(|| Some(short()).filter(|head| fits(head)))
}

fn fits(head: &str) -> bool {
    head.chars().count() <= MAX_HEAD
}

/// What stands from the name to the colon that begins the body, the first one after `signed`.
fn up_to_colon(source: &str, tokens: &Tokens, name: &Identifier, signed: TextSize) -> Option<String> {
    let colon = tokens.after(signed).iter().find(|token| token.kind() == TokenKind::Colon)?;
    one_line(source, tokens, TextRange::new(name.start(), colon.start()))
}

/// The code in a range without comments and line ends; `None` if a string goes over several lines.
fn one_line(source: &str, tokens: &Tokens, range: TextRange) -> Option<String> {
    let mut line = String::new();
    let mut last: Option<TextRange> = None;
    for token in tokens.in_range(range) {
        if matches!(token.kind(), TokenKind::Comment | TokenKind::NonLogicalNewline) {
            continue;
        }
        let text = source.get(token.range().to_std_range())?;
        if text.contains(|letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}')) {
            return None;
        }
        let gap = last.map_or("", |last| source.get(last.end().to_usize()..token.start().to_usize()).unwrap_or(" "));
        let is_broken = gap.contains(['\n', '\r']);
        let in_bracket = line.ends_with(['(', '[', '{']) || text.starts_with([')', ']', '}']);
        if !(gap.is_empty() || is_broken && in_bracket) {
            line.push(' ');
        }
        line.push_str(text);
        last = Some(token.range());
    }
    Some(line)
}

/// The parameters without annotations, `...` in place of every default.
fn names_of(parameters: &Parameters) -> String {
    let named = |parameter: &ParameterWithDefault| {
        let default = if parameter.default.is_some() { "=..." } else { "" };
        format!("{}{default}", parameter.parameter.name)
    };
    let mut names: Vec<String> = parameters.posonlyargs.iter().map(named).collect();
    if !names.is_empty() {
        names.push("/".to_owned());
    }
    names.extend(parameters.args.iter().map(named));
    match &parameters.vararg {
        Some(rest) => names.push(format!("*{}", rest.name)),
        None if !parameters.kwonlyargs.is_empty() => names.push("*".to_owned()),
        None => {}
    }
    names.extend(parameters.kwonlyargs.iter().map(named));
    names.extend(parameters.kwarg.iter().map(|rest| format!("**{}", rest.name)));
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_shown_by_its_head_alone() {
        let sources = [
            ("def f(x): return x", "def f(x): ..."),
            ("async def f(x: int = 1) -> str:  # why\n    return ''", "async def f(x: int = 1) -> str: ..."),
            (
                "def f(\n    a,  # one\n    b={'k': 1},\n) -> (\n    int\n):\n    return 1",
                "def f(a, b={'k': 1},) -> (int): ...",
            ),
            ("@cache\n@route('/x')\ndef f(): return {1: 2}", "def f(): ..."),
            ("if True:\n    def f(x):\n        return x", "def f(x): ..."),
            ("from __future__ import annotations\ndef f(x: T): pass", "def f(x: T): ..."),
            ("def f[T: int](x: T = lambda: 1) -> T: return x", "def f[T: int](x: T = lambda: 1) -> T: ..."),
            ("def f(a, /, b='''1\n2''', *, c: int, d=3, **e): pass", "def f(a, /, b=..., *, c, d=..., **e): ..."),
            ("def f(a, \\\n  *b): pass", "def f(a, *b): ..."),
            ("class C: x = 1", "class C: ..."),
            ("@dataclass\nclass C(Base, metaclass=M):\n    x: int", "class C(Base, metaclass=M): ..."),
            ("class C[T](list[T]): ...", "class C[T](list[T]): ..."),
        ];
        for (source, expected) in sources {
            assert_eq!(head(VariableKind::Definition, source).as_deref(), Some(expected), "{source}");
            assert_eq!(head(VariableKind::Definition, expected).as_deref(), Some(expected), "{source}");
            assert!(stands_alone(expected), "{expected}");
        }
        let (long, most) = ("x".repeat(MAX_HEAD), vec!["a"; MAX_HEAD].join(", "));
        assert_eq!(
            head(VariableKind::Definition, &format!("def f(a: '{long}', b='{long}'): pass")).as_deref(),
            Some("def f(a, b=...): ...")
        );
        for source in ["g = lambda x: x", "Al = list[int]", "def f(", "", "x", &format!("def f({most}): pass")] {
            assert_eq!(head(VariableKind::Definition, source), None, "{source}");
        }
        // Nested as deep as a text can be, it is no danger to the stack.
        let deep = format!("def f(x={}1{}): pass", "(".repeat(50_000), ")".repeat(50_000));
        assert_eq!(head(VariableKind::Definition, &deep).as_deref(), Some("def f(x=...): ..."));
    }

    #[test]
    fn imports_are_told_apart() {
        let of = |source: &str| head(VariableKind::Import, source);
        assert_eq!(of("import os\nimport os.path").as_deref(), Some("import os; import os.path"));
        assert_eq!(of("from a import (b as c,\n  d)").as_deref(), Some("from a import (b as c, d)"));
        assert_eq!(of("import os import os.path"), None);
        assert_eq!(of("import os; evil()"), None);
        let many: String = (0..200).map(|number| format!("import a.b{number}\n")).collect();
        let shown = of(&many).unwrap();
        assert!(shown.chars().count() <= MAX_IMPORTS && import_lines(&shown).unwrap().len() > 20, "{shown}");
    }
}
