//! Which operations that come page by page a program may call: its process is told of no others. It knows programs as words
//! only, so it may say one too many.

use std::collections::HashSet;

use fimble_toolkit::{Declaration, Operation};

use crate::interpreter::{Carried, Paging};
use crate::record::VariableKind;

/// By these a program reaches operations that its text does not name.
const UNNAMED: [&str; 5] = ["getattr", "methodcaller", "attrgetter", "eval", "exec"];

/// Of the operations that the text of a program and of the definitions it starts with can reach, those with pages.
pub(super) fn reached(declarations: &[Declaration], source: &str, variables: &[Carried]) -> Vec<Paging> {
    let is_paged = |operation: &&Operation| operation.enabled && operation.paging.is_some();
    // Most rounds have none, and their text need not be looked at.
    if !declarations.iter().any(|declaration| declaration.operations.iter().any(|operation| is_paged(&operation))) {
        return Vec::new();
    }
    let definitions = variables.iter().filter(|variable| variable.kind != VariableKind::Value);
    let texts = definitions.map(|variable| variable.content.as_str()).chain([source]);
    let words: HashSet<&str> = texts.flat_map(|text| text.split(is_no_name)).collect();
    let is_unnamed = UNNAMED.iter().any(|word| words.contains(word));
    let mut reached = Vec::new();
    for declaration in declarations.iter().filter(|declaration| words.contains(declaration.name.as_str())) {
        let operations = declaration.operations.iter().filter(is_paged);
        let named = operations.filter(|operation| is_unnamed || words.contains(operation.name.as_str()));
        reached.extend(named.filter_map(|operation| paging(&declaration.name, operation)));
    }
    reached
}

fn is_no_name(character: char) -> bool {
    !character.is_alphanumeric() && character != '_'
}

/// What a process is told of an operation; nothing if no parameter takes the token.
fn paging(target: &str, operation: &Operation) -> Option<Paging> {
    let paging = operation.paging.as_ref()?;
    Some(Paging {
        target: target.to_owned(),
        method: operation.name.clone(),
        argument: paging.argument.clone(),
        position: operation.parameters.iter().position(|parameter| parameter.name == paging.argument)?,
        token: paging.token.clone(),
        items: paging.items.clone(),
    })
}

#[cfg(test)]
mod tests {
    use fimble_toolkit::{Parameter, Risk};
    use serde_json::json;

    use super::*;

    fn operation(name: &str, paging: Option<fimble_toolkit::Paging>) -> Operation {
        let parameter = |name: &str| Parameter {
            name: name.to_owned(),
            description: String::new(),
            schema: json!({"type": "string"}),
            required: false,
            default: None,
        };
        Operation {
            name: name.to_owned(),
            description: String::new(),
            parameters: vec![parameter("state"), parameter("cursor")],
            returns: json!(true),
            risk: Risk::Read,
            idempotent: true,
            timeout: None,
            enabled: name != "hidden",
            paging,
        }
    }

    fn declarations() -> Vec<Declaration> {
        let paging = |argument: &str| Some(fimble_toolkit::Paging::new(argument, "meta.next", "rows"));
        let toolkit =
            |name: &str, operations| Declaration { name: name.to_owned(), description: String::new(), operations };
        let all = |name: &str| {
            let named = ["issues", "pulls", "hidden"].map(|name| operation(name, paging("cursor")));
            let others = [operation("whole", None), operation("wrong", paging("nothing"))];
            toolkit(name, named.into_iter().chain(others).collect())
        };
        vec![all("forge_toolkit"), toolkit("host_toolkit", vec![operation("cpu", None)]), all("other_toolkit")]
    }

    #[track_caller]
    fn check(source: &str, variables: &[(VariableKind, &str)], expected: &[&str]) {
        let variables = variables.iter().map(|(kind, content)| Carried {
            name: "x".to_owned(),
            kind: *kind,
            content: (*content).to_owned(),
        });
        let reached = reached(&declarations(), source, &variables.collect::<Vec<_>>());
        let names: Vec<String> = reached.iter().map(|one| format!("{}.{}", one.target, one.method)).collect();
        assert_eq!(names, expected, "{source}");
    }

    #[test]
    fn a_process_is_told_of_what_its_text_can_reach() {
        check("async for x in forge_toolkit.issues(): pass", &[], &["forge_toolkit.issues"]);
        check("f = forge_toolkit\nf.pulls(); f.hidden(); f.whole(); f.wrong()", &[], &["forge_toolkit.pulls"]);
        check("print(my_issues, forge_toolkit.issues_of())", &[], &[]);
        check("other.issues()", &[], &[]);
        let helper = "async def f(): return [x async for x in forge_toolkit.issues()]";
        check("await f()", &[(VariableKind::Definition, helper)], &["forge_toolkit.issues"]);
        check("await f()", &[(VariableKind::Value, helper)], &[]);
        let all = ["forge_toolkit.issues", "forge_toolkit.pulls"];
        check("getattr(forge_toolkit, 'iss' + 'ues')", &[], &all);
        let token = vec!["meta".to_owned(), "next".to_owned()];
        let told = reached(&declarations(), "forge_toolkit.issues", &[]);
        let (target, method) = ("forge_toolkit".to_owned(), "issues".to_owned());
        let (argument, items) = ("cursor".to_owned(), vec!["rows".to_owned()]);
        assert_eq!(told, [Paging { target, method, argument, position: 1, token, items }]);
    }
}
