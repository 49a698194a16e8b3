//! Follows what toolkit calls return through the names they are assigned to, and checks the fields that are used.
//!
//! Only what is sure counts: names bound once, at the top level. Models take an object with rows in it for the rows;
//! where it has one list only, that list is meant, and is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use fimble_toolkit::annotation;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, Expr, ExprAttribute, ExprBinOp, ExprCall, Number, Operator, Stmt, UnaryOp};
use ruff_text_size::{Ranged, TextRange, TextSize};
use serde_json::Value;

use super::Finding;
use super::bindings::Bindings;
use super::deferred::deferred_names;
use super::edit::{Edits, line_of, slice};
use super::names::Names;
use super::toolkit_call::{Toolkits, nearest};

/// Findings about fields that results do not have. Adds to `edits` the name of the list where an object is used as one.
pub(super) fn check_results(
    source: &str,
    body: &[Stmt],
    names: &Names,
    toolkits: &Toolkits<'_>,
    edits: &mut Edits,
) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for binding in &names.bound {
        *counts.entry(&binding.name).or_default() += 1;
    }
    let deferred = deferred_names(body);
    let once = |name: &str| counts.get(name) == Some(&1) && !names.local.contains(name) && !deferred.contains(name);
    let once = names.bound.iter().map(|binding| binding.name.clone()).filter(|name| once(name)).collect();
    let mut results = Results {
        source,
        toolkits,
        once,
        types: BTreeMap::new(),
        added: added_fields(body),
        edits,
        findings: Vec::new(),
    };
    results.visit_body(body);
    results.findings
}

/// A schema within the one that its references are resolved in.
#[derive(Clone, Copy)]
struct Type<'a> {
    root: &'a Value,
    schema: &'a Value,
}

impl<'a> Type<'a> {
    /// The type itself, without reference and without `None`.
    fn new(root: &'a Value, mut schema: &'a Value) -> Option<Self> {
        for _ in 0..16 {
            if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
                schema = root.pointer(reference.strip_prefix('#')?)?;
            } else if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
                let mut choices = choices.iter().filter(|choice| choice.get("type") != Some(&Value::from("null")));
                schema = choices.next().filter(|_| choices.next().is_none())?;
            } else {
                return Some(Self { root, schema });
            }
        }
        None
    }

    /// The fields of an object that has no others.
    fn fields(&self) -> Option<&'a serde_json::Map<String, Value>> {
        let is_open = self.schema.get("additionalProperties").is_some_and(|more| more != &Value::Bool(false));
        let fields = self.schema.get("properties").and_then(Value::as_object)?;
        (!is_open && !fields.is_empty()).then_some(fields)
    }

    fn field(&self, name: &str) -> Option<Self> {
        Self::new(self.root, self.fields()?.get(name)?)
    }

    fn is_text(&self) -> bool {
        self.schema.get("type") == Some(&Value::from("string"))
    }

    fn is_list(&self) -> bool {
        self.schema.get("type") == Some(&Value::from("array"))
    }

    fn item(&self) -> Option<Self> {
        Self::new(self.root, self.schema.get("items").filter(|_| self.is_list())?)
    }

    /// The name of the only field that is a list.
    fn rows(&self) -> Option<&'a str> {
        let is_list = |schema: &&Value| Type::new(self.root, schema).is_some_and(|kind| kind.is_list());
        let mut lists = self.fields()?.iter().filter(|(_, schema)| is_list(schema));
        lists.next().filter(|_| lists.next().is_none()).map(|(name, _)| name.as_str())
    }

    fn name(&self) -> String {
        annotation(self.schema)
    }
}

struct Results<'a, 'e> {
    source: &'a str,
    toolkits: &'a Toolkits<'a>,
    /// Names whose one binding says their type everywhere.
    once: BTreeSet<String>,
    types: BTreeMap<String, Type<'a>>,
    /// Fields that the program itself adds to results.
    added: BTreeSet<String>,
    edits: &'e mut Edits,
    findings: Vec<Finding>,
}

/// What a dict has beside its fields.
const DICT_METHODS: [&str; 11] =
    ["get", "items", "keys", "values", "pop", "update", "copy", "setdefault", "clear", "popitem", "result"];
const TEXT_METHODS: [&str; 48] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "maketrans",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
    "result",
];
const LIST_METHODS: [&str; 12] =
    ["append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort", "result"];

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
            self.types.insert(name.id.to_string(), kind);
        }
    }

    /// The type of an expression that is used as a list, after the name of the list was written behind it.
    fn as_list(&mut self, expression: &Expr) -> Option<Type<'a>> {
        let kind = self.type_of(expression)?;
        let Some(rows) = kind.rows().filter(|_| !kind.is_list()) else { return Some(kind) };
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
    fn item_of(&mut self, expression: &Expr) -> Option<Type<'a>> {
        let list = self.as_list(expression)?;
        match list.fields() {
            // Who goes through a text file means its lines.
            Some(fields) if fields.contains_key("text") && expression.is_name_expr() => {
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

    /// Writes `len(rows)` for `rows.total`; false if that is not what is meant.
    fn write_length(&mut self, attribute: &ExprAttribute, of: Type<'a>) -> bool {
        let field = attribute.attr.as_str();
        if !of.is_list() || !LENGTH_FIELDS.contains(&field) || self.added.contains(field) {
            return false;
        }
        let list = slice(self.source, attribute.value.range());
        let line = line_of(self.source, attribute);
        self.edits.say(format!("line {line}: wrote `len({list})` for `{list}.{field}`, since it is a list"));
        self.edits.replace(attribute.range(), format!("len({list})"));
        true
    }

    fn check_field(&mut self, at: TextSize, of: Type<'a>, field: &str) {
        let problem = if of.is_text() && !TEXT_METHODS.contains(&field) {
            Some(format!("a str has no field `{field}`"))
        } else if of.is_list() && !LIST_METHODS.contains(&field) {
            let text = if of.item().is_some_and(|item| item.field(field).is_some()) {
                format!("a list has no field `{field}`: take it of each element")
            } else {
                format!("a list has no field `{field}`")
            };
            Some(text)
        } else if let Some(fields) =
            of.fields().filter(|fields| !fields.contains_key(field) && !DICT_METHODS.contains(&field))
        {
            let there: Vec<&str> = fields.keys().map(String::as_str).collect();
            let near = nearest(field, there.iter().copied());
            let hint = near.first().map(|near| format!("; did you mean `{near}`")).unwrap_or_default();
            let within = of.rows().filter(|rows| of.field(rows).and_then(|list| list.item()?.field(field)).is_some());
            Some(match within {
                Some(rows) => format!(
                    "{} has no field `{field}`: each of its `{rows}` has, write `.{rows}[0].{field}`",
                    of.name()
                ),
                None => format!("{} has no field `{field}`{hint}; it has: {}", of.name(), there.join(", ")),
            })
        } else {
            None
        };
        let is_known = field.starts_with("__") || self.added.contains(field);
        if let Some(message) = problem.filter(|_| !is_known) {
            let line = line_of(self.source, TextRange::empty(at));
            self.findings.push(Finding { line, message });
        }
    }

    /// Results tell times as text, which models take for times.
    fn check_difference(&mut self, operation: &ExprBinOp) {
        let is_text = |side: &Expr| self.type_of(side).is_some_and(|kind| kind.is_text());
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
            let item = self.item_of(&generator.iter);
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
                let item = self.item_of(&each.iter);
                self.learn(&each.target, item);
                self.visit_body(&each.body);
                self.visit_body(&each.orelse);
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

/// The fields that a program writes to, wherever.
fn added_fields(body: &[Stmt]) -> BTreeSet<String> {
    struct Added(BTreeSet<String>);
    impl<'a> Visitor<'a> for Added {
        fn visit_expr(&mut self, expression: &'a Expr) {
            match expression {
                Expr::Attribute(attribute) if !attribute.ctx.is_load() => {
                    self.0.insert(attribute.attr.to_string());
                }
                Expr::Subscript(subscript) if !subscript.ctx.is_load() => {
                    if let Expr::StringLiteral(key) = &*subscript.slice {
                        self.0.insert(key.value.to_str().to_owned());
                    }
                }
                Expr::Call(call) => {
                    let names = call.arguments.keywords.iter().filter_map(|keyword| keyword.arg.as_ref());
                    self.0.extend(names.map(|name| name.to_string()));
                }
                // A literal dict may be given to `update`.
                Expr::Dict(dict) => {
                    let keys = dict.items.iter().filter_map(|item| item.key.as_ref()?.as_string_literal_expr());
                    self.0.extend(keys.map(|key| key.value.to_str().to_owned()));
                }
                _ => {}
            }
            visitor::walk_expr(self, expression);
        }
    }
    let mut added = Added(BTreeSet::new());
    added.visit_body(body);
    added.0
}
