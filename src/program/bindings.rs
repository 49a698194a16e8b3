//! Which names one scope binds: assignment in every form Python has. It does not look into nested functions or classes.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, Comprehension, ExceptHandler, Expr, ExprContext, Parameters, Pattern, Stmt};
use ruff_text_size::{Ranged, TextRange};

/// A name that is bound, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binding {
    /// The name.
    pub(super) name: String,
    /// Where the name stands.
    pub(super) range: TextRange,
}

/// What one scope binds.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    /// In the order of the text.
    pub(super) bound: Vec<Binding>,
    /// Names declared `global` here.
    pub(super) global: Vec<Binding>,
    /// Names declared `nonlocal` here.
    pub(super) nonlocal: Vec<String>,
    /// True if it imports names that the text does not say.
    pub(super) star_import: bool,
}

impl Bindings {
    /// What a body binds.
    pub(super) fn of(body: &[Stmt]) -> Self {
        let mut bindings = Self::default();
        bindings.visit_body(body);
        bindings
    }

    /// What a target binds: a loop's, or a comprehension's.
    pub(super) fn of_target(target: &Expr) -> Self {
        let mut bindings = Self::default();
        bindings.visit_expr(target);
        bindings
    }

    fn bind(&mut self, name: &str, range: TextRange) {
        self.bound.push(Binding { name: name.to_owned(), range });
    }
}

/// The names of parameters.
pub(super) fn parameter_names(parameters: &Parameters) -> impl Iterator<Item = &str> {
    parameters.iter().map(|parameter| parameter.name().as_str())
}

/// The name that an `import` binds.
pub(super) fn imported_name(alias: &Alias) -> (&str, TextRange) {
    match &alias.asname {
        Some(name) => (name.as_str(), name.range()),
        None => (alias.name.split('.').next().unwrap_or_default(), alias.name.range()),
    }
}

impl<'a> Visitor<'a> for Bindings {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                self.bind(&function.name, function.name.range());
                for default in function.parameters.iter_non_variadic_params().filter_map(|one| one.default()) {
                    self.visit_expr(default);
                }
            }
            Stmt::ClassDef(class) => self.bind(&class.name, class.name.range()),
            Stmt::Import(import) => {
                for (name, range) in import.names.iter().map(imported_name) {
                    self.bind(name, range);
                }
            }
            Stmt::ImportFrom(import) => {
                for alias in &import.names {
                    let (name, range) = imported_name(alias);
                    if name == "*" {
                        self.star_import = true;
                    } else {
                        self.bind(name, range);
                    }
                }
            }
            Stmt::Global(global) => {
                self.global
                    .extend(global.names.iter().map(|name| Binding { name: name.to_string(), range: name.range() }));
            }
            Stmt::Nonlocal(nonlocal) => self.nonlocal.extend(nonlocal.names.iter().map(ToString::to_string)),
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if matches!(name.ctx, ExprContext::Store | ExprContext::Del) => {
                self.bind(&name.id, name.range());
            }
            Expr::Lambda(_) => {}
            _ => visitor::walk_expr(self, expression),
        }
    }

    // A comprehension's targets are its own; only `:=` within it binds outside.
    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.visit_expr(&comprehension.iter);
        for condition in &comprehension.ifs {
            self.visit_expr(condition);
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.bind(name, name.range());
        }
        visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(capture) => capture.name.as_ref(),
            Pattern::MatchStar(capture) => capture.name.as_ref(),
            Pattern::MatchMapping(capture) => capture.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = name {
            self.bind(name, name.range());
        }
        visitor::walk_pattern(self, pattern);
    }
}
