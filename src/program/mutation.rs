//! Where a program changes values that it got: fields that it adds by name, and values that get fields which the text does
//! not name. What is changed so is no longer what was declared.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{CmpOp, Comprehension, Expr, ExprCall, Operator, Stmt};

use super::bindings::parameter_names;
use super::deferred::{root_name, spread};

/// What a program changes.
#[derive(Debug, Default)]
pub(super) struct Mutations {
    /// Fields that the program writes somewhere, or asks for before it reads them.
    pub(super) named: BTreeSet<String>,
    /// Names whose values, or parts of them, get fields that the text does not name.
    pub(super) changed: BTreeSet<String>,
    /// True if a function does that to what it is given.
    pub(super) parameter: bool,
    /// Names whose kind the program asks for, because it may be another.
    pub(super) asked: BTreeSet<String>,
    /// A value and the name by which it is looked up: `disk` and `field` of `disk[field]`.
    pub(super) keyed: BTreeSet<(String, String)>,
}

/// The changes that a body makes.
pub(super) fn mutations(body: &[Stmt]) -> Mutations {
    let mut reader = Reader::default();
    reader.visit_body(body);
    let Reader { mut mutations, parameters, iterated } = reader;
    // `for row in rows: row[name] = 1` changes what `rows` has.
    spread(&mut mutations.changed, &iterated);
    mutations.parameter = !mutations.changed.is_disjoint(&parameters);
    mutations
}

#[derive(Default)]
struct Reader {
    mutations: Mutations,
    parameters: BTreeSet<String>,
    /// A loop's target and what it loops over.
    iterated: BTreeSet<(String, String)>,
}

impl Reader {
    fn change(&mut self, of: &Expr) {
        self.mutations.changed.extend(root_name(of).map(str::to_owned));
    }

    fn iterate(&mut self, target: &Expr, from: &Expr) {
        if let (Some(target), Some(from)) = (root_name(target), root_name(from)) {
            self.iterated.insert((target.to_owned(), from.to_owned()));
        }
    }

    fn call(&mut self, call: &ExprCall) {
        let keywords = call.arguments.keywords.iter().filter_map(|keyword| keyword.arg.as_ref());
        self.mutations.named.extend(keywords.map(|name| name.to_string()));
        let arguments = &call.arguments.args;
        match &*call.func {
            Expr::Attribute(attribute) => {
                const ADDING: [&str; 7] =
                    ["append", "extend", "insert", "update", "setdefault", "__setitem__", "appendleft"];
                let says_all = |argument: &Expr| argument.is_dict_expr() || argument.is_literal_expr();
                let unsaid = call.arguments.keywords.iter().any(|keyword| keyword.arg.is_none());
                if ADDING.contains(&attribute.attr.as_str()) && (unsaid || !arguments.iter().all(says_all)) {
                    self.change(&attribute.value);
                }
                if attribute.attr.as_str() == "setdefault"
                    && let Some(Expr::StringLiteral(key)) = arguments.first()
                {
                    self.mutations.named.insert(key.value.to_str().to_owned());
                }
            }
            Expr::Name(name) if name.id == "setattr" => arguments.iter().take(1).for_each(|of| self.change(of)),
            Expr::Name(name) if name.id == "isinstance" => {
                self.mutations.asked.extend(arguments.first().and_then(root_name).map(str::to_owned));
            }
            Expr::Name(name) if name.id == "hasattr" => {
                if let [_, Expr::StringLiteral(field)] = &**arguments {
                    self.mutations.named.insert(field.value.to_str().to_owned());
                }
            }
            _ => {}
        }
    }
}

impl<'a> Visitor<'a> for Reader {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                self.parameters.extend(parameter_names(&function.parameters).map(str::to_owned));
            }
            Stmt::For(each) => self.iterate(&each.target, &each.iter),
            // `row |= more`, `rows += more`.
            Stmt::AugAssign(assign)
                if matches!(assign.op, Operator::BitOr | Operator::Add) && !assign.value.is_literal_expr() =>
            {
                self.change(&assign.target);
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.iterate(&comprehension.target, &comprehension.iter);
        visitor::walk_comprehension(self, comprehension);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Attribute(attribute) if !attribute.ctx.is_load() => {
                self.mutations.named.insert(attribute.attr.to_string());
            }
            Expr::Subscript(subscript) => match (&*subscript.slice, &*subscript.value) {
                (Expr::StringLiteral(key), _) if !subscript.ctx.is_load() => {
                    self.mutations.named.insert(key.value.to_str().to_owned());
                }
                (Expr::Name(key), Expr::Name(of)) if subscript.ctx.is_load() => {
                    self.mutations.keyed.insert((of.id.to_string(), key.id.to_string()));
                }
                _ if subscript.ctx.is_store() => self.change(&subscript.value),
                _ => {}
            },
            Expr::Call(call) => self.call(call),
            // A literal dict may be given to `update`.
            Expr::Dict(dict) => {
                let keys = dict.items.iter().filter_map(|item| item.key.as_ref()?.as_string_literal_expr());
                self.mutations.named.extend(keys.map(|key| key.value.to_str().to_owned()));
            }
            // `if "tags" in row: row["tags"]`.
            Expr::Compare(compare) if matches!(*compare.ops, [CmpOp::In | CmpOp::NotIn]) => {
                if let Expr::StringLiteral(field) = &*compare.left {
                    self.mutations.named.insert(field.value.to_str().to_owned());
                }
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }
}
