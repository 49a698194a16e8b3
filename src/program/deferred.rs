//! Which names hold calls that are waited for later: given to `asyncio.gather` and its like, or awaited by name; and which are
//! gone through by `async for`.
//!
//! A toolkit call assigned to such a name keeps its promise; everywhere else its value is meant.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, Expr, ExprCall, Stmt};

/// The names of a body that hold promises.
pub(super) fn deferred_names(body: &[Stmt]) -> BTreeSet<String> {
    let mut flow = Flow::default();
    flow.visit_body(body);
    // `for task in tasks: await task` makes `tasks` a collection of promises.
    spread(&mut flow.deferred, &flow.iterated);
    flow.deferred
}

/// The names of a body that `async for` goes through. A call of a toolkit is one that it can go through; what an `async def`
/// returns has to be waited for first.
pub(super) fn walked_names(body: &[Stmt]) -> BTreeSet<String> {
    let mut flow = Flow::default();
    flow.visit_body(body);
    flow.walked
}

/// Adds to `names` what is looped over, where the loop's target is among them; each is a target and what it loops over.
pub(super) fn spread<'a>(names: &mut BTreeSet<String>, iterated: impl IntoIterator<Item = &'a (String, String)>) {
    let mut sources: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for (target, from) in iterated {
        sources.entry(target).or_default().push(from);
    }
    let mut waiting: Vec<String> = names.iter().cloned().collect();
    while let Some(name) = waiting.pop() {
        for from in sources.remove(name.as_str()).into_iter().flatten() {
            if names.insert(from.clone()) {
                waiting.push(from.clone());
            }
        }
    }
}

/// True for functions that take calls and wait for them, or let them run.
pub(super) fn takes_promises(call: &ExprCall) -> bool {
    const FUNCTIONS: [&str; 8] = [
        "gather",
        "create_task",
        "ensure_future",
        "wait_for",
        "wait",
        "as_completed",
        "shield",
        "run_coroutine_threadsafe",
    ];
    match &*call.func {
        Expr::Name(name) => name.id != "wait" && FUNCTIONS.contains(&name.id.as_str()),
        Expr::Attribute(attribute) => {
            let of_asyncio = matches!(&*attribute.value, Expr::Name(name) if name.id == "asyncio");
            attribute.attr.as_str() == "create_task" || of_asyncio && FUNCTIONS.contains(&attribute.attr.as_str())
        }
        _ => false,
    }
}

/// The name at the root of a name, an element, an attribute or a method's result: `tasks` of `tasks.values()`.
pub(super) fn root_name(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Name(name) => Some(&name.id),
        Expr::Subscript(subscript) => root_name(&subscript.value),
        Expr::Starred(starred) => root_name(&starred.value),
        Expr::Attribute(attribute) => root_name(&attribute.value),
        Expr::Call(call) => match &*call.func {
            Expr::Attribute(attribute) => root_name(&attribute.value),
            _ => call.arguments.args.first().and_then(root_name),
        },
        _ => None,
    }
}

#[derive(Default)]
struct Flow {
    deferred: BTreeSet<String>,
    walked: BTreeSet<String>,
    /// A loop's target and what it loops over.
    iterated: Vec<(String, String)>,
}

impl Flow {
    fn iterates(&mut self, target: &Expr, from: &Expr) {
        let Some(from) = root_name(from) else { return };
        let mut targets = vec![target];
        while let Some(target) = targets.pop() {
            match target {
                Expr::Name(name) => self.iterated.push((name.id.to_string(), from.to_owned())),
                Expr::Tuple(tuple) => targets.extend(&tuple.elts),
                Expr::List(list) => targets.extend(&list.elts),
                _ => {}
            }
        }
    }

    fn walks(&mut self, is_async: bool, from: &Expr) {
        if let Expr::Name(name) = from
            && is_async
        {
            self.walked.insert(name.id.to_string());
        }
    }
}

impl<'a> Visitor<'a> for Flow {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::For(each) = statement {
            self.iterates(&each.target, &each.iter);
            self.walks(each.is_async, &each.iter);
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.iterates(&comprehension.target, &comprehension.iter);
        self.walks(comprehension.is_async, &comprehension.iter);
        visitor::walk_comprehension(self, comprehension);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Await(awaited) if matches!(&*awaited.value, Expr::Name(_) | Expr::Subscript(_)) => {
                self.deferred.extend(root_name(&awaited.value).map(str::to_owned));
            }
            Expr::Call(call) if takes_promises(call) => {
                for argument in &call.arguments.args {
                    match argument {
                        Expr::List(list) => {
                            self.deferred.extend(list.elts.iter().filter_map(root_name).map(str::to_owned));
                        }
                        _ => self.deferred.extend(root_name(argument).map(str::to_owned)),
                    }
                }
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}

/// The functions of a program that wait for what they are given.
#[derive(Default)]
pub(super) struct Functions {
    by_name: BTreeMap<String, Waiting>,
}

/// The parameters of a function that it waits for.
struct Waiting {
    /// In order; the first of a method is the object.
    positional: Vec<bool>,
    /// `*calls`, from that position on.
    rest: bool,
    names: BTreeSet<String>,
    /// `**calls`.
    others: bool,
    is_method: bool,
}

impl Functions {
    /// The functions of a body, methods too, in which names hold promises.
    pub(super) fn of(body: &[Stmt], deferred: &BTreeSet<String>) -> Self {
        struct Reader<'a> {
            deferred: &'a BTreeSet<String>,
            is_class: bool,
            functions: Functions,
        }
        impl<'a> Visitor<'a> for Reader<'_> {
            fn visit_stmt(&mut self, statement: &'a Stmt) {
                let outer = self.is_class;
                if let Stmt::FunctionDef(function) = statement {
                    let parameters = &function.parameters;
                    let waits = |name: &str| self.deferred.contains(name);
                    let named = parameters.iter_non_variadic_params().map(|one| one.name().as_str());
                    let waiting = Waiting {
                        positional: parameters
                            .posonlyargs
                            .iter()
                            .chain(&parameters.args)
                            .map(|one| waits(one.name()))
                            .collect(),
                        rest: parameters.vararg.as_ref().is_some_and(|rest| waits(rest.name())),
                        names: named.filter(|name| waits(name)).map(str::to_owned).collect(),
                        others: parameters.kwarg.as_ref().is_some_and(|others| waits(others.name())),
                        is_method: self.is_class,
                    };
                    self.functions.by_name.insert(function.name.to_string(), waiting);
                }
                self.is_class = statement.is_class_def_stmt();
                visitor::walk_stmt(self, statement);
                self.is_class = outer;
            }
        }
        let mut reader = Reader { deferred, is_class: false, functions: Self::default() };
        reader.visit_body(body);
        reader.functions
    }

    /// True if what is called waits for its argument at `index`.
    pub(super) fn waits_for(&self, call: &ExprCall, index: usize) -> bool {
        self.called(call).is_some_and(|waiting| {
            let index = index + usize::from(waiting.is_method);
            waiting.positional.get(index).copied().unwrap_or(waiting.rest)
        })
    }

    /// True if what is called waits for its argument of that name.
    pub(super) fn waits_for_named(&self, call: &ExprCall, name: &str) -> bool {
        self.called(call).is_some_and(|waiting| waiting.others || waiting.names.contains(name))
    }

    fn called(&self, call: &ExprCall) -> Option<&Waiting> {
        let (name, is_method) = match &*call.func {
            Expr::Name(name) => (name.id.as_str(), false),
            Expr::Attribute(attribute) => (attribute.attr.as_str(), true),
            _ => return None,
        };
        self.by_name.get(name).filter(|waiting| waiting.is_method == is_method)
    }
}
