//! Puts a call that names the wrong toolkit right, where only one other has the operation.

use fimble_toolkit::Declaration;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprAttribute, Stmt};
use ruff_text_size::Ranged;

use super::edit::Edits;
use super::toolkit_call::Toolkits;

/// Writes `git_toolkit.blame` for `host_toolkit.blame`. What a call may do is judged by its operation, so the name of the
/// toolkit before it adds nothing that anybody relies on.
pub(super) fn move_to_owner(body: &[Stmt], toolkits: &Toolkits<'_>, declarations: &[Declaration], edits: &mut Edits) {
    Owners { toolkits, declarations, edits }.visit_body(body);
}

struct Owners<'a, 'e> {
    toolkits: &'a Toolkits<'a>,
    declarations: &'a [Declaration],
    edits: &'e mut Edits,
}

impl Owners<'_, '_> {
    fn attribute(&mut self, attribute: &ExprAttribute) {
        let Some(named) = self.toolkits.named(&attribute.value) else { return };
        let operation = attribute.attr.as_str();
        if named.operation(operation).is_some() {
            return;
        }
        let mut owners = self.declarations.iter().filter(|toolkit| toolkit.operation(operation).is_some());
        if let (Some(owner), None) = (owners.next(), owners.next()) {
            self.edits.say(format!("wrote `{}.{operation}` for `{}.{operation}`", owner.name, named.name));
            self.edits.replace(attribute.value.range(), owner.name.clone());
        }
    }
}

impl<'a> Visitor<'a> for Owners<'_, '_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Attribute(attribute) = expression {
            self.attribute(attribute);
        }
        visitor::walk_expr(self, expression);
    }
}
