//! Inserts the `await` that a toolkit call lacks, so that both spellings work, in functions that are not async too.
//!
//! Only columns change, never lines. It does not check whether the call is right.

use std::collections::BTreeSet;
use std::mem;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, Expr, ExprAwait, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::deferred::{Functions, deferred_names, root_name, takes_promises, walked_names};
use super::edit::{Edits, line_of, slice};
use super::toolkit_call::Toolkits;

/// Adds to `edits` what makes every toolkit call of `body` give its value where its value is used.
///
/// `async_functions` are functions that earlier rounds defined with `async def`.
pub(super) fn await_calls(
    source: &str,
    body: &[Stmt],
    toolkits: &Toolkits<'_>,
    async_functions: BTreeSet<String>,
    edits: &mut Edits,
) {
    let mut functions = AsyncFunctions(async_functions);
    functions.visit_body(body);
    let deferred = deferred_names(body);
    let mut rewriter = Rewriter {
        source,
        toolkits,
        async_functions: functions.0,
        functions: Functions::of(body, &deferred),
        deferred,
        walked: walked_names(body),
        scope: Scope::Async,
        usage: Use::Value,
        edits,
    };
    rewriter.visit_body(body);
}

/// What an expression's place makes of a call.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    /// Its value is used.
    Value,
    /// Its value is used, by something that binds tighter than `await`.
    Trailer,
    /// The promise is kept, and somebody waits for it later.
    Promise,
    /// It stands after `await`.
    Awaited,
}

/// Where a call may wait.
#[derive(Clone, Copy, PartialEq)]
enum Scope {
    /// The top level and `async def`.
    Async,
    /// `def`, `lambda` and a class's body.
    Sync,
    /// A generator, which an `await` would turn into something else, and which may have one.
    Generator,
}

struct Rewriter<'a, 'e> {
    source: &'a str,
    toolkits: &'a Toolkits<'a>,
    async_functions: BTreeSet<String>,
    deferred: BTreeSet<String>,
    walked: BTreeSet<String>,
    functions: Functions,
    scope: Scope,
    /// How the next visited expression is used; its parent sets it.
    usage: Use,
    edits: &'e mut Edits,
}

impl Rewriter<'_, '_> {
    fn used(&mut self, expression: &Expr, usage: Use) {
        self.usage = usage;
        self.visit_expr(expression);
    }

    fn within(&mut self, scope: Scope, visit: impl FnOnce(&mut Self)) {
        let outer = mem::replace(&mut self.scope, scope);
        visit(self);
        self.scope = outer;
    }

    fn assigned(&mut self, target: &Expr, value: &Expr) {
        match (target, value) {
            (Expr::Tuple(targets), Expr::Tuple(values)) if targets.elts.len() == values.elts.len() => {
                for (target, value) in targets.elts.iter().zip(&values.elts) {
                    self.assigned(target, value);
                }
            }
            _ => {
                let is_kept = self.is_deferred(target) || self.is_walked(target, value);
                self.used(value, if is_kept { Use::Promise } else { Use::Value });
            }
        }
    }

    /// True for a toolkit's call that `async for` goes through by a name.
    fn is_walked(&self, target: &Expr, value: &Expr) -> bool {
        let is_name = target.as_name_expr().is_some_and(|name| self.walked.contains(name.id.as_str()));
        is_name && value.as_call_expr().is_some_and(|call| self.toolkits.called(call).is_some())
    }

    fn is_deferred(&self, expression: &Expr) -> bool {
        root_name(expression).is_some_and(|name| self.deferred.contains(name))
    }

    /// What a loop goes through. `async for` takes the call itself, which waits for page after page.
    fn iterated(&mut self, expression: &Expr, is_async: bool) {
        if !is_async {
            return self.used(expression, Use::Value);
        }
        let Some((call, name)) = self.walked(expression) else { return self.used(expression, Use::Promise) };
        self.edits.replace(TextRange::new(expression.start(), call.start()), "");
        self.edits.replace(TextRange::new(call.end(), expression.end()), "");
        let line = line_of(self.source, expression);
        self.edits.say(format!("line {line}: let `async for` go through `{name}` itself, which it waits for"));
        self.call(call, Use::Promise);
    }

    /// The call of `await call`, and of `(await call).items` where that is the list of a page's items.
    fn walked<'e>(&self, expression: &'e Expr) -> Option<(&'e ExprCall, String)> {
        let (result, field) = match expression {
            Expr::Attribute(attribute) => (&*attribute.value, Some(attribute.attr.as_str())),
            Expr::Await(_) => (expression, None),
            _ => return None,
        };
        let call = result.as_await_expr().map_or(result, |awaited| &*awaited.value).as_call_expr()?;
        let (toolkit, name) = self.toolkits.called(call)?;
        // `await (call)` keeps its parentheses.
        let is_bare = field.is_some()
            || slice(self.source, TextRange::new(expression.start(), call.start())).trim_end() == "await";
        let items = || toolkit.operation(name)?.paging.as_ref().map(|paging| paging.items.as_slice());
        let is_items = field.is_none_or(|field| items().is_some_and(|items| items == [field]));
        (is_bare && is_items).then(|| (call, format!("{}.{name}", toolkit.name)))
    }

    fn comprehension(&mut self, generators: &[Comprehension], key: Option<&Expr>, element: &Expr, scope: Scope) {
        let Some((first, others)) = generators.split_first() else { return };
        self.iterated(&first.iter, first.is_async);
        self.within(scope, |rewriter| {
            for generator in others {
                rewriter.iterated(&generator.iter, generator.is_async);
            }
            for condition in generators.iter().flat_map(|generator| &generator.ifs) {
                rewriter.used(condition, Use::Value);
            }
            if let Some(key) = key {
                rewriter.used(key, Use::Value);
            }
            rewriter.used(element, Use::Promise);
        });
    }

    fn call(&mut self, call: &ExprCall, usage: Use) {
        if let Some(argument) = blocking_run(call).filter(|_| self.scope == Scope::Async) {
            let (before, after) = if usage == Use::Trailer { ("(await ", ")") } else { ("await ", "") };
            self.edits.replace(TextRange::new(call.start(), argument.start()), before);
            self.edits.replace(TextRange::new(argument.end(), call.end()), after);
            let line = line_of(self.source, call);
            self.edits.say(format!("line {line}: wrote `await` in place of a second event loop"));
            self.used(argument, Use::Awaited);
            return;
        }
        if let Some((toolkit, operation)) = self.toolkits.called(call) {
            self.wait_for(call, usage, &format!("{}.{operation}", toolkit.name), true);
        } else if let Expr::Name(name) = &*call.func
            && self.async_functions.contains(name.id.as_str())
        {
            self.wait_for(call, usage, &name.id, false);
        }
        self.callee(call);
        let promises = takes_promises(call) || is_collected(call) && self.is_deferred(&call.func);
        let usage = |promises| if promises { Use::Promise } else { Use::Value };
        for (index, argument) in call.arguments.args.iter().enumerate() {
            match argument {
                Expr::Starred(starred) if promises => self.used(&starred.value, Use::Promise),
                _ => self.used(argument, usage(promises || self.functions.waits_for(call, index))),
            }
        }
        for keyword in &call.arguments.keywords {
            let waits = keyword.arg.as_ref().is_some_and(|name| self.functions.waits_for_named(call, name));
            self.used(&keyword.value, usage(promises || waits));
        }
    }

    /// What is called; `….result()` is how a promise is waited for by hand.
    fn callee(&mut self, call: &ExprCall) {
        if let Expr::Attribute(attribute) = &*call.func
            && attribute.attr.as_str() == "result"
            && call.arguments.is_empty()
        {
            self.used(&attribute.value, Use::Promise);
        } else {
            self.used(&call.func, Use::Trailer);
        }
    }

    fn wait_for(&mut self, call: &ExprCall, usage: Use, name: &str, is_toolkit: bool) {
        if !matches!(usage, Use::Value | Use::Trailer) {
            return;
        }
        let line = line_of(self.source, call);
        match self.scope {
            Scope::Async => {
                let (before, after) = if usage == Use::Trailer { ("(await ", ")") } else { ("await ", "") };
                self.edits.insert(call.start(), before);
                if !after.is_empty() {
                    self.edits.insert(call.end(), after);
                }
                self.edits.say(format!("line {line}: inserted `await` before `{name}`"));
            }
            Scope::Sync | Scope::Generator if is_toolkit => {
                self.edits.insert(call.end(), ".result()");
                self.edits
                    .say(format!("line {line}: `{name}` is waited for with `.result()`, as its function is not async"));
            }
            Scope::Sync | Scope::Generator => {}
        }
    }

    fn awaited(&mut self, awaited: &ExprAwait) {
        if self.scope == Scope::Sync
            && let Expr::Call(call) = &*awaited.value
            && let Some((toolkit, operation)) = self.toolkits.called(call)
            // `await(…)` and `await (call)` keep their parentheses.
            && slice(self.source, TextRange::new(awaited.start(), call.start())).trim_end() == "await"
        {
            self.edits.replace(TextRange::new(awaited.start(), call.start()), "");
            self.wait_for(call, Use::Value, &format!("{}.{operation}", toolkit.name), true);
        }
        if !awaited.value.is_call_expr() && self.is_rooted_in_toolkit(&awaited.value)
            || matches!(&*awaited.value, Expr::Call(call) if self.is_rooted_in_toolkit(&call.func))
        {
            // `await tk.op().field` awaits the field; the call was meant.
            let keyword = TextRange::new(awaited.start(), awaited.value.start());
            let keyword = match slice(self.source, keyword).trim_end() {
                "await" => keyword,
                // A parenthesis follows, and stays.
                _ => TextRange::at(awaited.start(), TextSize::new(5)),
            };
            self.edits.replace(keyword, "");
            let line = line_of(self.source, awaited);
            self.edits.say(format!("line {line}: moved `await` to the call whose result it was meant for"));
            self.used(&awaited.value, Use::Value);
            return;
        }
        self.used(&awaited.value, Use::Awaited);
    }

    /// True for fields, elements and methods of a toolkit call's result.
    fn is_rooted_in_toolkit(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Attribute(attribute) => self.is_result(&attribute.value),
            Expr::Subscript(subscript) => self.is_result(&subscript.value),
            _ => false,
        }
    }

    fn is_result(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Call(call) => self.toolkits.called(call).is_some() || self.is_rooted_in_toolkit(&call.func),
            _ => self.is_rooted_in_toolkit(expression),
        }
    }
}

impl<'a> Visitor<'a> for Rewriter<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                for decorator in &function.decorator_list {
                    self.used(&decorator.expression, Use::Value);
                }
                self.visit_parameters(&function.parameters);
                let scope = if function.is_async { Scope::Async } else { Scope::Sync };
                self.within(scope, |rewriter| rewriter.visit_body(&function.body));
            }
            Stmt::ClassDef(class) => {
                for decorator in &class.decorator_list {
                    self.used(&decorator.expression, Use::Value);
                }
                self.within(Scope::Sync, |rewriter| rewriter.visit_body(&class.body));
            }
            Stmt::Assign(assign) => match assign.targets.as_slice() {
                [target] => {
                    self.assigned(target, &assign.value);
                    self.used(target, Use::Value);
                }
                _ => visitor::walk_stmt(self, statement),
            },
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.assigned(&assign.target, value);
                }
            }
            Stmt::Return(answer) => {
                if let Some(value) = &answer.value {
                    self.used(value, if self.scope == Scope::Sync { Use::Promise } else { Use::Value });
                }
            }
            Stmt::For(each) if each.is_async => {
                self.iterated(&each.iter, true);
                self.visit_body(&each.body);
                self.visit_body(&each.orelse);
            }
            Stmt::With(with) if with.is_async => {
                for item in &with.items {
                    self.used(&item.context_expr, Use::Promise);
                }
                self.visit_body(&with.body);
            }
            _ => {
                self.usage = Use::Value;
                visitor::walk_stmt(self, statement);
            }
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        let usage = mem::replace(&mut self.usage, Use::Value);
        match expression {
            Expr::Call(call) => self.call(call, usage),
            Expr::Await(awaited) => self.awaited(awaited),
            Expr::Attribute(attribute) => self.used(&attribute.value, Use::Trailer),
            Expr::Subscript(subscript) => {
                self.used(&subscript.value, Use::Trailer);
                self.used(&subscript.slice, Use::Value);
            }
            Expr::List(list) => list.elts.iter().for_each(|element| self.used(element, Use::Promise)),
            Expr::Set(set) => set.elts.iter().for_each(|element| self.used(element, Use::Promise)),
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|element| self.used(element, Use::Promise)),
            Expr::Starred(starred) => self.used(&starred.value, Use::Value),
            Expr::ListComp(list) => self.comprehension(&list.generators, None, &list.elt, self.scope),
            Expr::SetComp(set) => self.comprehension(&set.generators, None, &set.elt, self.scope),
            Expr::DictComp(dict) => {
                self.comprehension(&dict.generators, dict.key.as_deref(), &dict.value, self.scope);
            }
            Expr::Generator(each) => self.comprehension(&each.generators, None, &each.elt, Scope::Generator),
            Expr::Lambda(lambda) => {
                if let Some(parameters) = &lambda.parameters {
                    self.visit_parameters(parameters);
                }
                self.within(Scope::Sync, |rewriter| rewriter.used(&lambda.body, Use::Promise));
            }
            Expr::Named(named) => self.assigned(&named.target, &named.value),
            Expr::If(choice) => {
                let branch = if usage == Use::Promise { Use::Promise } else { Use::Value };
                self.used(&choice.test, Use::Value);
                self.used(&choice.body, branch);
                self.used(&choice.orelse, branch);
            }
            _ => visitor::walk_expr(self, expression),
        }
    }
}

/// The names of functions defined with `async def`, at the top level of a body.
struct AsyncFunctions(BTreeSet<String>);

impl<'a> Visitor<'a> for AsyncFunctions {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function)
                if function.is_async && function.decorator_list.is_empty() && !yields(&function.body) =>
            {
                self.0.insert(function.name.to_string());
            }
            Stmt::FunctionDef(function) => {
                self.0.remove(function.name.as_str());
            }
            Stmt::ClassDef(_) => {}
            _ => visitor::walk_stmt(self, statement),
        }
    }
}

/// True for the body of a generator, which is not awaited.
fn yields(body: &[Stmt]) -> bool {
    struct Yields(bool);
    impl<'a> Visitor<'a> for Yields {
        fn visit_expr(&mut self, expression: &'a Expr) {
            self.0 |= matches!(expression, Expr::Yield(_) | Expr::YieldFrom(_));
            visitor::walk_expr(self, expression);
        }
    }
    let mut yields = Yields(false);
    yields.visit_body(body);
    yields.0
}

/// The argument of `asyncio.run(…)` and `….run_until_complete(…)`, which fail where a loop already runs.
fn blocking_run(call: &ExprCall) -> Option<&Expr> {
    let Expr::Attribute(attribute) = &*call.func else { return None };
    let of_asyncio = matches!(&*attribute.value, Expr::Name(name) if name.id == "asyncio");
    let runs = of_asyncio && attribute.attr.as_str() == "run" || attribute.attr.as_str() == "run_until_complete";
    call.arguments.args.first().filter(|argument| runs && !argument.is_starred_expr())
}

/// True for `tasks.append(…)` and its like.
fn is_collected(call: &ExprCall) -> bool {
    const METHODS: [&str; 6] = ["append", "add", "insert", "extend", "appendleft", "setdefault"];
    matches!(&*call.func, Expr::Attribute(attribute) if METHODS.contains(&attribute.attr.as_str()))
}
