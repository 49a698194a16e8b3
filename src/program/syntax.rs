//! What parses and is no Python all the same: what CPython's compiler refuses, and syntax newer than the embedded version.
//!
//! `await`, `return`, `yield`, `break` and `continue` at the wrong place are judged in `check.rs`, where the words say more.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::LazyLock;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, Expr, ModModule, Parameters, PythonVersion, Stmt};
use ruff_python_parser::semantic_errors::{
    LazyImportContext, SemanticSyntaxChecker, SemanticSyntaxContext, SemanticSyntaxError,
    SemanticSyntaxErrorKind as Kind,
};
use ruff_python_parser::{Mode, ParseError, ParseOptions, Parsed, parse};
use ruff_text_size::TextRange;

use super::Finding;
use super::bindings::{Binding, Bindings, parameter_names};
use super::edit::line_of;

/// The version of Python that programs run in.
static EMBEDDED: LazyLock<PythonVersion> =
    LazyLock::new(|| PythonVersion::from_str(env!("EMBEDDED_PYTHON_VERSION")).unwrap_or_default());

/// The module of a text, with what of it is newer than the embedded version.
///
/// # Errors
/// The first thing that is no Python of any version.
pub(super) fn parse_module(source: &str) -> Result<Parsed<ModModule>, ParseError> {
    let options = ParseOptions::from(Mode::Module).with_target_version(*EMBEDDED);
    // The mode says that it is a module.
    parse(source, options)?.try_into_module().map_or_else(|| ruff_python_parser::parse_module(source), Ok)
}

/// What CPython's compiler would refuse in a module that parses.
pub(super) fn check_syntax(source: &str, module: &Parsed<ModModule>) -> Vec<Finding> {
    let newer = module.unsupported_syntax_errors().iter().map(|error| (error.range, error.to_string()));
    let mut visitor = Scopes { checker: SemanticSyntaxChecker::new(), context: Context::new(source) };
    visitor.visit_body(module.suite());
    let wrong = visitor.context.errors.into_inner().into_iter().map(|error| (error.range, error.to_string()));
    newer.chain(wrong).map(|(range, reason)| finding(source, range, &reason)).collect()
}

/// A syntax error with the line that it is in.
pub(super) fn finding(source: &str, range: TextRange, reason: &str) -> Finding {
    let line = line_of(source, range);
    let index = usize::try_from(line).unwrap_or(1).saturating_sub(1);
    let text: String = source.lines().nth(index).unwrap_or_default().trim().chars().take(100).collect();
    Finding { line, message: format!("syntax error: {reason} in `{text}`") }
}

/// What stands around a place.
enum Scope {
    Function { is_async: bool, bound: BTreeSet<String>, parameters: BTreeSet<String>, global: Vec<Binding> },
    Lambda { parameters: BTreeSet<String> },
    Class,
    Comprehension { is_async: bool, is_generator: bool },
}

struct Context<'a> {
    source: &'a str,
    scopes: Vec<Scope>,
    errors: RefCell<Vec<SemanticSyntaxError>>,
}

impl<'a> Context<'a> {
    fn new(source: &'a str) -> Self {
        Self { source, scopes: Vec::new(), errors: RefCell::default() }
    }

    /// The scopes around, the nearest first, comprehensions left out.
    fn blocks(&self) -> impl Iterator<Item = &Scope> {
        self.scopes.iter().rev().filter(|scope| !matches!(scope, Scope::Comprehension { .. }))
    }
}

impl SemanticSyntaxContext for Context<'_> {
    fn future_annotations_or_stub(&self) -> bool {
        false
    }

    fn lazy_import_context(&self) -> Option<LazyImportContext> {
        None
    }

    fn python_version(&self) -> PythonVersion {
        *EMBEDDED
    }

    fn source(&self) -> &str {
        self.source
    }

    fn global(&self, name: &str) -> Option<TextRange> {
        match self.blocks().next() {
            Some(Scope::Function { global, .. }) => {
                global.iter().find(|binding| binding.name == name).map(|binding| binding.range)
            }
            _ => None,
        }
    }

    fn has_nonlocal_binding(&self, name: &str) -> bool {
        let outer = self.blocks().skip(1);
        outer.into_iter().any(|scope| match scope {
            Scope::Function { bound, .. } => bound.contains(name),
            Scope::Lambda { parameters } => parameters.contains(name),
            _ => false,
        })
    }

    fn in_async_context(&self) -> bool {
        // The top level may wait.
        !matches!(self.blocks().next(), Some(Scope::Function { is_async: false, .. } | Scope::Lambda { .. }))
    }

    fn in_await_allowed_context(&self) -> bool {
        !matches!(self.blocks().next(), Some(Scope::Class))
    }

    fn in_yield_allowed_context(&self) -> bool {
        matches!(self.scopes.last(), Some(Scope::Function { .. } | Scope::Lambda { .. }))
    }

    fn in_sync_comprehension(&self) -> bool {
        let around = self.scopes.iter().rev();
        let mut around = around.take_while(|scope| matches!(scope, Scope::Comprehension { .. }));
        around.any(|scope| matches!(scope, Scope::Comprehension { is_async: false, is_generator: false }))
    }

    fn in_class_body_comprehension(&self) -> bool {
        matches!(self.blocks().next(), Some(Scope::Class))
    }

    fn in_module_scope(&self) -> bool {
        self.scopes.is_empty()
    }

    fn in_function_scope(&self) -> bool {
        matches!(self.scopes.last(), Some(Scope::Function { .. }))
    }

    fn in_generator_context(&self) -> bool {
        matches!(self.scopes.last(), Some(Scope::Comprehension { is_generator: true, .. }))
    }

    /// A notebook's top level may wait, as ours.
    fn in_notebook(&self) -> bool {
        true
    }

    fn report_semantic_error(&self, error: SemanticSyntaxError) {
        let is_told_elsewhere = matches!(
            error.kind,
            Kind::AwaitOutsideAsyncFunction(_)
                | Kind::YieldOutsideFunction(_)
                | Kind::ReturnOutsideFunction
                | Kind::BreakOutsideLoop
                | Kind::ContinueOutsideLoop
        );
        if !is_told_elsewhere {
            self.errors.borrow_mut().push(error);
        }
    }

    fn in_loop_context(&self) -> bool {
        true
    }

    fn is_bound_parameter(&self, name: &str) -> bool {
        match self.blocks().next() {
            Some(Scope::Function { parameters, .. } | Scope::Lambda { parameters }) => parameters.contains(name),
            _ => false,
        }
    }
}

/// Functions, classes and comprehensions within each other that are looked into.
const DEEPEST: usize = 100;

struct Scopes<'a> {
    checker: SemanticSyntaxChecker,
    context: Context<'a>,
}

impl Scopes<'_> {
    fn within(&mut self, scope: Scope, visit: impl FnOnce(&mut Self)) {
        // Each comprehension looks through all that is within it; CPython does not take so many either.
        if self.context.scopes.len() >= DEEPEST {
            return;
        }
        self.context.scopes.push(scope);
        visit(self);
        self.context.scopes.pop();
    }

    fn comprehension(&mut self, generators: &[Comprehension], elements: &[&Expr], is_generator: bool) {
        let Some((first, others)) = generators.split_first() else { return };
        self.visit_expr(&first.iter);
        let is_async = generators.iter().any(|generator| generator.is_async);
        self.within(Scope::Comprehension { is_async, is_generator }, |scopes| {
            scopes.visit_expr(&first.target);
            first.ifs.iter().for_each(|condition| scopes.visit_expr(condition));
            for generator in others {
                scopes.visit_expr(&generator.iter);
                scopes.visit_expr(&generator.target);
                generator.ifs.iter().for_each(|condition| scopes.visit_expr(condition));
            }
            elements.iter().for_each(|element| scopes.visit_expr(element));
        });
    }
}

fn names(parameters: &Parameters) -> BTreeSet<String> {
    parameter_names(parameters).map(str::to_owned).collect()
}

impl<'a> Visitor<'a> for Scopes<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.checker.visit_stmt(statement, &self.context);
        match statement {
            Stmt::FunctionDef(function) => {
                function.decorator_list.iter().for_each(|decorator| self.visit_decorator(decorator));
                self.visit_parameters(&function.parameters);
                if let Some(returns) = &function.returns {
                    self.visit_expr(returns);
                }
                let parameters = names(&function.parameters);
                let Bindings { bound, global, .. } = Bindings::of(&function.body);
                let bound = bound.into_iter().map(|binding| binding.name).chain(parameters.iter().cloned()).collect();
                let scope = Scope::Function { is_async: function.is_async, bound, parameters, global };
                self.within(scope, |scopes| scopes.visit_body(&function.body));
            }
            Stmt::ClassDef(class) => {
                class.decorator_list.iter().for_each(|decorator| self.visit_decorator(decorator));
                if let Some(arguments) = &class.arguments {
                    self.visit_arguments(arguments);
                }
                self.within(Scope::Class, |scopes| scopes.visit_body(&class.body));
            }
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        self.checker.visit_expr(expression, &self.context);
        match expression {
            Expr::Lambda(lambda) => {
                if let Some(parameters) = &lambda.parameters {
                    self.visit_parameters(parameters);
                }
                let parameters = lambda.parameters.as_deref().map(names).unwrap_or_default();
                self.within(Scope::Lambda { parameters }, |scopes| scopes.visit_expr(&lambda.body));
            }
            Expr::ListComp(list) => self.comprehension(&list.generators, &[&list.elt], false),
            Expr::SetComp(set) => self.comprehension(&set.generators, &[&set.elt], false),
            Expr::Generator(each) => self.comprehension(&each.generators, &[&each.elt], true),
            Expr::DictComp(dict) => {
                let mut elements: Vec<&Expr> = vec![&dict.value];
                elements.extend(dict.key.as_deref());
                self.comprehension(&dict.generators, &elements, false);
            }
            _ => visitor::walk_expr(self, expression),
        }
    }
}
