//! Which names a program binds and which it reads from outside, by Python's scopes. It does not know what is carried.
//!
//! Where it is unsure it says "reads": a name too many costs a variable sent in vain, one too few a `NameError`.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, Expr, ExprContext, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::bindings::{Binding, Bindings, parameter_names};

/// The names of a program.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// What the top level binds, `global` statements included, in the order of the text.
    pub(super) bound: Vec<Binding>,
    /// Names bound in any scope, parameters and comprehension targets included.
    pub(super) anywhere: BTreeSet<String>,
    /// Names bound in a scope other than the top level.
    pub(super) local: BTreeSet<String>,
    /// Names that are read and not local, with every place.
    pub(super) read: BTreeMap<String, Vec<TextRange>>,
    /// True if names may be read or bound that the text does not say.
    pub(super) dynamic: bool,
    /// True if names may be bound that the text does not say.
    pub(super) binds_unsaid: bool,
}

impl Names {
    /// The names of a module's body.
    pub(super) fn of(body: &[Stmt]) -> Self {
        let bindings = Bindings::of(body);
        let star_import = bindings.star_import;
        let mut names = Self { dynamic: star_import, binds_unsaid: star_import, ..Self::default() };
        names.bound = bindings.bound;
        let mut reader = Reader { names, scopes: Vec::new() };
        reader.visit_body(body);
        let mut names = reader.names;
        names.anywhere = names.bound.iter().map(|binding| binding.name.clone()).collect();
        names.anywhere.extend(names.local.iter().cloned());
        names
    }

    /// True if the program gives the name another meaning somewhere.
    pub(super) fn redefines(&self, name: &str) -> bool {
        self.binds_unsaid || self.anywhere.contains(name)
    }

    /// True if the top level binds the name.
    pub(super) fn binds(&self, name: &str) -> bool {
        self.bound.iter().any(|binding| binding.name == name)
    }
}

/// Functions through which names are reached that the text does not say.
const DYNAMIC: [&str; 8] = ["globals", "locals", "vars", "dir", "eval", "exec", "compile", "__import__"];

struct Reader {
    names: Names,
    /// The names of the function, lambda and comprehension scopes around. Classes have none: what a class binds is not
    /// seen by its methods.
    scopes: Vec<BTreeSet<String>>,
}

impl Reader {
    fn within(&mut self, scope: BTreeSet<String>, visit: impl FnOnce(&mut Self)) {
        self.names.local.extend(scope.iter().cloned());
        self.scopes.push(scope);
        visit(self);
        self.scopes.pop();
    }

    fn read(&mut self, name: &str, range: TextRange) {
        if DYNAMIC.contains(&name) {
            self.names.dynamic = true;
            self.names.binds_unsaid |= matches!(name, "globals" | "locals" | "vars" | "exec");
        }
        if !self.scopes.iter().any(|scope| scope.contains(name)) {
            self.names.read.entry(name.to_owned()).or_default().push(range);
        }
    }

    fn comprehension<'a>(&mut self, generators: &'a [Comprehension], elements: &[&'a Expr]) {
        let Some((first, others)) = generators.split_first() else { return };
        // The first iterable is evaluated outside.
        self.visit_expr(&first.iter);
        let targets = generators.iter().flat_map(|generator| Bindings::of_target(&generator.target).bound);
        let scope = targets.map(|binding| binding.name).collect();
        self.within(scope, |reader| {
            for generator in others {
                reader.visit_expr(&generator.iter);
            }
            for generator in generators {
                reader.visit_expr(&generator.target);
                for condition in &generator.ifs {
                    reader.visit_expr(condition);
                }
            }
            for element in elements {
                reader.visit_expr(element);
            }
        });
    }
}

impl<'a> Visitor<'a> for Reader {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                for decorator in &function.decorator_list {
                    self.visit_decorator(decorator);
                }
                self.visit_parameters(&function.parameters);
                if let Some(returns) = &function.returns {
                    self.visit_expr(returns);
                }
                let bindings = Bindings::of(&function.body);
                let mut scope: BTreeSet<String> = parameter_names(&function.parameters).map(str::to_owned).collect();
                scope.extend(bindings.bound.into_iter().map(|binding| binding.name));
                // A name that is declared and not assigned is only read.
                let assigned = bindings.global.into_iter().filter(|global| scope.remove(&global.name));
                self.names.bound.extend(assigned);
                scope.retain(|name| !bindings.nonlocal.contains(name));
                self.within(scope, |reader| reader.visit_body(&function.body));
            }
            Stmt::ClassDef(class) => {
                let bindings = Bindings::of(&class.body);
                self.names.local.extend(bindings.bound.into_iter().map(|binding| binding.name));
                visitor::walk_stmt(self, statement);
            }
            Stmt::AugAssign(assign) => {
                // `x += 1` reads `x`, though its context is that of a store.
                if let Expr::Name(name) = &*assign.target {
                    self.read(&name.id, name.range());
                }
                visitor::walk_stmt(self, statement);
            }
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if matches!(name.ctx, ExprContext::Load | ExprContext::Del) => {
                self.read(&name.id, name.range());
            }
            Expr::Lambda(lambda) => {
                let mut scope = BTreeSet::new();
                if let Some(parameters) = &lambda.parameters {
                    self.visit_parameters(parameters);
                    scope.extend(parameter_names(parameters).map(str::to_owned));
                }
                self.within(scope, |reader| reader.visit_expr(&lambda.body));
            }
            Expr::ListComp(list) => self.comprehension(&list.generators, &[&list.elt]),
            Expr::SetComp(set) => self.comprehension(&set.generators, &[&set.elt]),
            Expr::Generator(generator) => self.comprehension(&generator.generators, &[&generator.elt]),
            Expr::DictComp(dict) => {
                let mut elements: Vec<&Expr> = vec![&dict.value];
                elements.extend(dict.key.as_deref());
                self.comprehension(&dict.generators, &elements);
            }
            _ => visitor::walk_expr(self, expression),
        }
    }
}

/// Python's own names, and those the runner adds: the exceptions that a call may raise.
pub(super) fn is_builtin(name: &str) -> bool {
    BUILTINS.split_whitespace().any(|builtin| builtin == name)
}

const BUILTINS: &str = "
    ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError BrokenPipeError
    BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError
    ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning EnvironmentError Exception ExceptionGroup
    False FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError ImportError
    ImportWarning IndentationError IndexError InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError
    MemoryError ModuleNotFoundError NameError None NotADirectoryError NotImplemented NotImplementedError OSError
    OverflowError PendingDeprecationWarning PermissionError ProcessLookupError PythonFinalizationError RecursionError
    ReferenceError ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError
    SyntaxWarning SystemError SystemExit TabError TimeoutError True TypeError UnboundLocalError UnicodeDecodeError
    UnicodeEncodeError UnicodeError UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning
    ZeroDivisionError __build_class__ __debug__ __doc__ __file__ __import__ __loader__ __name__ __package__ __spec__
    __builtins__ __annotations__ abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr
    classmethod compile complex copyright credits delattr dict dir divmod enumerate eval exec exit filter float format
    frozenset getattr globals hasattr hash help hex id input int isinstance issubclass iter len license list locals map
    max memoryview min next object oct open ord pow print property quit range repr reversed round set setattr slice
    sorted staticmethod str sum super tuple type vars zip
    report ToolError UnknownOperation InvalidArgument NotFound Denied Forbidden Timeout Unavailable Failed Record";

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> (Vec<String>, Vec<String>) {
        let module = ruff_python_parser::parse_module(source).unwrap();
        let names = Names::of(module.suite());
        let bound = names.bound.iter().map(|binding| binding.name.clone()).collect();
        (bound, names.read.keys().cloned().collect())
    }

    #[test]
    fn every_way_to_bind_a_name_is_seen() {
        let source = "import a.b, c as d\nfrom e import f as g\nh = i = 1\nj: int = 2\nk += 1\n(l, *m), n.x = 1\n\
            for o in []: pass\nwith p as q: pass\ntry: pass\nexcept E as r: pass\ndel s\n(t := 1)\n\
            def u(v): w = 1\nclass x: y = 1\nmatch 1:\n  case [z, *aa] | {'k': bb, **cc} as dd: pass\n\
            def ee():\n  global ff\n  ff = 1\n[gg for gg in (hh := [1])]\n";
        let (bound, _) = names(source);
        let mut expected: Vec<&str> = "a d g h i j k l m o q r s t u x z aa bb cc dd ee hh ff".split(' ').collect();
        let mut bound: Vec<&str> = bound.iter().map(String::as_str).collect();
        expected.sort_unstable();
        bound.sort_unstable();
        assert_eq!(bound, expected);
    }

    #[test]
    fn only_names_that_reach_outside_are_read() {
        let source = "def f(a, b=c):\n    d = a + e\n    return [g for g in d if g in h]\n\
            x = lambda y: y + z\ntotal += 1\nclass K(Base):\n    p: T = q\n    def m(self): return p\n\
            rows = [row for row in row]\nprint(f'{s!r:{w}}')\n";
        let (_, read) = names(source);
        assert_eq!(read.join(" "), "Base T c e h p print q row s total w z");
    }
}
