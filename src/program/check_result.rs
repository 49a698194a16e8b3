//! Follows what toolkit calls return through the names they are assigned to, and checks the fields that are used.
//!
//! Only what is sure counts: names bound once, at the top level, or each time to a call of the same operation. Models take an object with rows in it for the rows;
//! where it has one list only, that list is meant, and is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, Expr, ExprAttribute, ExprBinOp, ExprCall, Number, Operator, Stmt, UnaryOp};
use ruff_text_size::{Ranged, TextRange, TextSize};
use serde_json::Value;

use super::bindings::Bindings;
use super::check::catches;
use super::deferred::deferred_names;
use super::edit::{Edits, line_of, slice};
use super::mutation::{Mutations, mutations};
use super::names::Names;
use super::result_type::Type;
use super::toolkit_call::{Toolkits, listed, nearest};
use super::{Finding, Known};

/// Findings about fields that values do not have, and the same of values that nobody promised anything of. Adds to `edits` the
/// name of the list where an object is used as one.
pub(super) fn check_results(
    source: &str,
    body: &[Stmt],
    names: &Names,
    toolkits: &Toolkits<'_>,
    known: &Known<'_>,
    edits: &mut Edits,
) -> (Vec<Finding>, Vec<Finding>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for binding in &names.bound {
        *counts.entry(&binding.name).or_default() += 1;
    }
    let deferred = deferred_names(body);
    let mutations = mutations(body);
    let is_followed = |name: &str| !deferred.contains(name) && !mutations.asked.contains(name);
    let mut assigned = Assigned { toolkits, results: BTreeMap::new() };
    assigned.visit_body(body);
    let has_one_type = |name: &str| {
        let count = counts.get(name).copied().unwrap_or_default();
        count == 1 || assigned.results.get(name).is_some_and(|results| results.len() == count && is_same(results))
    };
    let once = |name: &str| has_one_type(name) && !names.local.contains(name) && is_followed(name);
    let once = names.bound.iter().map(|binding| binding.name.clone()).filter(|name| once(name)).collect();
    let carried = known.shapes.iter().filter(|(name, _)| !names.redefines(name) && !toolkits.has(name));
    let carried = carried.filter(|(name, _)| is_followed(name));
    let carried = carried.filter_map(|(name, shape)| Some((name.clone(), Type::new(shape, shape)?)));
    let types = carried.collect();
    let mut results = Results {
        source,
        names,
        toolkits,
        once,
        types,
        mutations,
        is_changed: false,
        fields_may_lack: false,
        edits,
        findings: Vec::new(),
        hints: Vec::new(),
    };
    let changed = |name: &String| results.mutations.changed.contains(name);
    results.is_changed = results.mutations.parameter || results.types.keys().any(changed);
    results.visit_body(body);
    // What a value that is changed has in the end, nobody knows; nor what an element of it has.
    if results.is_changed { (Vec::new(), results.hints) } else { (results.findings, results.hints) }
}

/// The calls whose results a program assigns to a name alone.
struct Assigned<'a, 't> {
    toolkits: &'t Toolkits<'a>,
    /// Toolkit and operation of each.
    results: BTreeMap<String, Vec<(String, String)>>,
}

impl<'e> Visitor<'e> for Assigned<'_, '_> {
    fn visit_stmt(&mut self, statement: &'e Stmt) {
        if let Stmt::Assign(assign) = statement
            && let [Expr::Name(name)] = assign.targets.as_slice()
        {
            let value = assign.value.as_await_expr().map_or(&*assign.value, |awaited| &*awaited.value);
            if let Some((toolkit, operation)) = value.as_call_expr().and_then(|call| self.toolkits.called(call)) {
                let result = (toolkit.name.clone(), operation.to_owned());
                self.results.entry(name.id.to_string()).or_default().push(result);
            }
        }
        visitor::walk_stmt(self, statement);
    }
}

fn is_same(results: &[(String, String)]) -> bool {
    results.windows(2).all(|pair| pair[0] == pair[1])
}

struct Results<'a, 'e> {
    source: &'a str,
    names: &'a Names,
    toolkits: &'a Toolkits<'a>,
    /// Names whose bindings say one type, everywhere.
    once: BTreeSet<String>,
    types: BTreeMap<String, Type<'a>>,
    mutations: Mutations,
    /// True if a value that is followed gets fields that the text does not name.
    is_changed: bool,
    /// True where the program says what it does if a field is not there.
    fields_may_lack: bool,
    edits: &'e mut Edits,
    findings: Vec<Finding>,
    hints: Vec<Finding>,
}

/// Fields that models take a list to have for its length; `count` is a method of lists.
const LENGTH_FIELDS: [&str; 4] = ["total", "length", "size", "len"];

/// What an iteration over an object gives: the names of its fields.
static FIELD_NAME: LazyLock<Value> = LazyLock::new(|| serde_json::json!({"type": "string"}));

impl<'a> Results<'a, '_> {
    fn type_of(&self, expression: &Expr) -> Option<Type<'a>> {
        match expression {
            Expr::Await(awaited) => self.type_of(&awaited.value),
            Expr::Name(name) => self.types.get(name.id.as_str()).copied(),
            Expr::Call(call) => self.type_of_call(call),
            Expr::Attribute(attribute) => self.type_of(&attribute.value)?.field(&attribute.attr),
            Expr::Subscript(subscript) => {
                let of = self.type_of(&subscript.value)?;
                match &*subscript.slice {
                    Expr::StringLiteral(key) => of.field(key.value.to_str()),
                    Expr::Slice(_) if of.is_list() => Some(of),
                    index if is_index(index) => of.item(),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn type_of_call(&self, call: &ExprCall) -> Option<Type<'a>> {
        if let Some((toolkit, operation)) = self.toolkits.called(call) {
            let returns = &toolkit.operation(operation)?.returns;
            return Type::new(returns, returns);
        }
        match &*call.func {
            Expr::Attribute(attribute) if attribute.attr.as_str() == "result" && call.arguments.is_empty() => {
                self.type_of(&attribute.value)
            }
            Expr::Name(name) if self.names.redefines(&name.id) => None,
            // A sorted list has the same elements.
            Expr::Name(name) if matches!(name.id.as_str(), "sorted" | "list" | "reversed") => {
                self.type_of(call.arguments.args.first()?).filter(Type::is_list)
            }
            Expr::Name(name)
                if matches!(name.id.as_str(), "max" | "min" | "next") && call.arguments.args.len() == 1 =>
            {
                self.type_of(call.arguments.args.first()?)?.item()
            }
            _ => None,
        }
    }

    fn learn(&mut self, target: &Expr, kind: Option<Type<'a>>) {
        if let (Expr::Name(name), Some(kind)) = (target, kind)
            && self.once.contains(name.id.as_str())
        {
            self.is_changed |= self.mutations.changed.contains(name.id.as_str());
            self.types.insert(name.id.to_string(), kind);
        }
    }

    /// The type of an expression that is used as a list, after the name of the list was written behind it.
    fn as_list(&mut self, expression: &Expr) -> Option<Type<'a>> {
        let kind = self.type_of(expression)?;
        let Some(rows) = kind.rows().filter(|_| !kind.is_list() && !kind.is_learnt()) else { return Some(kind) };
        // What binds looser than a field needs parentheses, which a call that is yet to be awaited gets by itself.
        if expression.is_await_expr() {
            let at = expression.start();
            self.edits.replace(TextRange::empty(at), "(");
            self.edits.insert(expression.end(), format!(").{rows}"));
        } else if expression.is_call_expr() {
            return Some(kind);
        } else {
            self.edits.insert(expression.end(), format!(".{rows}"));
        }
        let text: String = slice(self.source, expression.range()).chars().take(60).collect();
        let line = line_of(self.source, expression);
        self.edits.say(format!("line {line}: wrote `.{rows}` after `{text}`, which is a {}, no list", kind.name()));
        kind.field(rows)
    }

    /// The same for a test of truth, where an object with much else in it may be meant itself.
    fn as_tested(&mut self, expression: &Expr) {
        let is_wrapper = |kind: Type<'_>| kind.fields().is_some_and(|fields| fields.len() <= 4);
        if expression.is_name_expr() && self.type_of(expression).is_some_and(is_wrapper) {
            self.as_list(expression);
        }
    }

    /// What each turn of a loop over the expression gets.
    fn item_of(&mut self, target: &Expr, expression: &Expr) -> Option<Type<'a>> {
        // `for field in disk: disk[field]` goes through the fields.
        if let (Expr::Name(target), Expr::Name(of)) = (target, expression)
            && self.mutations.keyed.contains(&(of.id.to_string(), target.id.to_string()))
        {
            return None;
        }
        let list = self.as_list(expression)?;
        match list.fields() {
            // Who goes through a text file means its lines.
            Some(fields) if fields.contains_key("text") && expression.is_name_expr() && !list.is_learnt() => {
                self.edits.insert(expression.end(), ".text.splitlines()");
                let (line, text) = (line_of(self.source, expression), slice(self.source, expression.range()));
                self.edits
                    .say(format!("line {line}: wrote `.text.splitlines()` after `{text}`, which is a {}", list.name()));
                None
            }
            Some(_) => Type::new(&FIELD_NAME, &FIELD_NAME),
            None => list.item(),
        }
    }

    /// What each turn of an `async for`, which begins at `start`, gets: the items of all pages.
    fn walked_item(&mut self, start: TextSize, target: &Expr, expression: &Expr) -> Option<Type<'a>> {
        let call = expression.as_call_expr()?;
        let (toolkit, name) = self.toolkits.called(call)?;
        let operation = toolkit.operation(name)?;
        let result = Type::new(&operation.returns, &operation.returns)?;
        if let Some(paging) = &operation.paging {
            return paging.items.iter().try_fold(result, |kind, name| kind.field(name))?.item();
        }
        let Some(rows) = result.rows().filter(|_| !result.is_learnt()) else {
            return self.item_of(target, expression);
        };
        // It has one page, and the list in it is meant.
        let keyword = TextRange::at(start, TextSize::of("async"));
        let after = slice(self.source, TextRange::new(keyword.end(), expression.start()));
        let space = TextSize::of(&after[..after.len() - after.trim_start().len()]);
        self.edits.replace(TextRange::at(start, keyword.len() + space), "");
        self.edits.insert(call.start(), "(await ");
        self.edits.insert(call.end(), format!(").{rows}"));
        let line = line_of(self.source, expression);
        let name = format!("{}.{name}", toolkit.name);
        self.edits.say(format!("line {line}: wrote `for … in (await {name}(…)).{rows}`, since `{name}` has no pages"));
        result.field(rows)?.item()
    }

    /// Writes `len(rows)` for `rows.total`; false if that is not what is meant.
    fn write_length(&mut self, attribute: &ExprAttribute, of: Type<'a>) -> bool {
        let field = attribute.attr.as_str();
        if !of.is_list() || of.is_learnt() || !LENGTH_FIELDS.contains(&field) || self.mutations.named.contains(field) {
            return false;
        }
        let list = slice(self.source, attribute.value.range());
        let line = line_of(self.source, attribute);
        self.edits.say(format!("line {line}: wrote `len({list})` for `{list}.{field}`, since it is a list"));
        self.edits.replace(attribute.range(), format!("len({list})"));
        true
    }

    fn check_field(&mut self, at: TextSize, of: Type<'a>, field: &str) {
        if of.has_method(field)
            || field.starts_with("__")
            || self.mutations.named.contains(field)
            || self.fields_may_lack
        {
            return;
        }
        let problem = if of.is_text() {
            Some(format!("a str has no field `{field}`"))
        } else if of.is_list() {
            let text = if of.item().is_some_and(|item| item.field(field).is_some()) {
                format!("a list has no field `{field}`: take it of each element")
            } else {
                format!("a list has no field `{field}`")
            };
            Some(text)
        } else if let Some(fields) = of.fields().filter(|fields| !fields.contains_key(field)) {
            let there: Vec<&str> = fields.keys().map(String::as_str).collect();
            let near = nearest(field, there.iter().copied());
            let hint = near.first().map(|near| format!("; did you mean `{near}`")).unwrap_or_default();
            let all = listed(field, &there, "");
            let within = of.rows().filter(|rows| of.field(rows).and_then(|list| list.item()?.field(field)).is_some());
            Some(match within {
                Some(rows) => format!(
                    "{} has no field `{field}`: each of its `{rows}` has, write `.{rows}[0].{field}`",
                    of.name()
                ),
                None => format!("{} has no field `{field}`{hint}; it has: {all}", of.name()),
            })
        } else {
            None
        };
        if let Some(message) = problem {
            let finding = Finding { line: line_of(self.source, TextRange::empty(at)), message };
            if of.is_learnt() { self.hints.push(finding) } else { self.findings.push(finding) }
        }
    }

    /// Results tell times as text, which models take for times.
    fn check_difference(&mut self, operation: &ExprBinOp) {
        let is_text = |side: &Expr| self.type_of(side).is_some_and(|kind| kind.is_text() && !kind.is_learnt());
        if operation.op == Operator::Sub && (is_text(&operation.left) || is_text(&operation.right)) {
            let text = slice(self.source, operation.left.range());
            let message =
                format!("`{text}` is a str: use `datetime.datetime.fromisoformat({text})` to compute with it");
            self.findings.push(Finding { line: line_of(self.source, operation), message });
        }
    }

    fn comprehension(&mut self, generators: &[Comprehension], elements: &[&Expr]) {
        let outer = self.types.clone();
        for generator in generators {
            self.visit_expr(&generator.iter);
            let (target, iterated) = (&generator.target, &generator.iter);
            let item = match generator.is_async {
                true => self.walked_item(generator.start(), target, iterated),
                false => self.item_of(target, iterated),
            };
            // A comprehension's own names hide outer ones.
            let bound = Bindings::of_target(&generator.target).bound;
            for binding in bound {
                self.types.remove(&binding.name);
            }
            if let (Expr::Name(name), Some(item)) = (&generator.target, item) {
                self.types.insert(name.id.to_string(), item);
            }
            for condition in &generator.ifs {
                self.visit_expr(condition);
            }
        }
        for element in elements {
            self.visit_expr(element);
        }
        self.types = outer;
    }
}

impl<'s> Visitor<'s> for Results<'_, '_> {
    fn visit_stmt(&mut self, statement: &'s Stmt) {
        match statement {
            // What a function gets, and when it runs, is not known.
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
            Stmt::Assign(assign) => {
                visitor::walk_stmt(self, statement);
                if let [target] = assign.targets.as_slice() {
                    self.learn(target, self.type_of(&assign.value));
                }
            }
            Stmt::For(each) => {
                self.visit_expr(&each.iter);
                let item = match each.is_async {
                    true => self.walked_item(each.start(), &each.target, &each.iter),
                    false => self.item_of(&each.target, &each.iter),
                };
                self.learn(&each.target, item);
                self.visit_body(&each.body);
                self.visit_body(&each.orelse);
            }
            Stmt::Try(attempt) => {
                let outer = self.fields_may_lack;
                self.fields_may_lack |= catches(attempt, &["KeyError", "AttributeError", "LookupError", "TypeError"]);
                self.visit_body(&attempt.body);
                self.fields_may_lack = outer;
                attempt.handlers.iter().for_each(|handler| self.visit_except_handler(handler));
                self.visit_body(&attempt.orelse);
                self.visit_body(&attempt.finalbody);
            }
            Stmt::If(choice) => {
                self.as_tested(&choice.test);
                visitor::walk_stmt(self, statement);
            }
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'s Expr) {
        match expression {
            Expr::Attribute(attribute) => {
                if let Some(of) = self.type_of(&attribute.value)
                    && !self.write_length(attribute, of)
                {
                    self.check_field(attribute.attr.start(), of, &attribute.attr);
                }
            }
            Expr::Subscript(subscript) => match &*subscript.slice {
                Expr::StringLiteral(key) => {
                    if let Some(of) = self.type_of(&subscript.value) {
                        self.check_field(key.start(), of, key.value.to_str());
                    }
                }
                index if is_index(index) || index.is_slice_expr() => {
                    self.as_list(&subscript.value);
                }
                _ => {}
            },
            Expr::Call(call) => {
                if let Expr::Name(name) = &*call.func
                    && !self.names.redefines(&name.id)
                    && matches!(name.id.as_str(), "len" | "sorted" | "list" | "max" | "min" | "enumerate" | "sum")
                    && let Some(first) = call.arguments.args.first()
                {
                    self.as_list(first);
                }
            }
            Expr::BinOp(operation) => self.check_difference(operation),
            Expr::UnaryOp(negated) if negated.op == UnaryOp::Not => self.as_tested(&negated.operand),
            Expr::If(choice) => self.as_tested(&choice.test),
            Expr::ListComp(list) => return self.comprehension(&list.generators, &[&list.elt]),
            Expr::SetComp(set) => return self.comprehension(&set.generators, &[&set.elt]),
            Expr::Generator(each) => return self.comprehension(&each.generators, &[&each.elt]),
            Expr::DictComp(dict) => {
                let mut elements: Vec<&Expr> = vec![&dict.value];
                elements.extend(dict.key.as_deref());
                return self.comprehension(&dict.generators, &elements);
            }
            Expr::Lambda(_) => return,
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}

/// True for `0` and `-1`.
fn is_index(expression: &Expr) -> bool {
    match expression {
        Expr::NumberLiteral(number) => matches!(number.value, Number::Int(_)),
        Expr::UnaryOp(negated) => negated.op == UnaryOp::USub && is_index(&negated.operand),
        _ => false,
    }
}
