//! What checking a program and writing stubs cost, in milliseconds: `cargo run --release --example check_speed`.

use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use fimble::program::{Config, Known, Scaffold, ScaffoldInput, splice};
use fimble::prompt::{Budget, described, stubs};
use fimble::segment::estimate_tokens;
use fimble_toolkit::{Declaration, Operation, Parameter, Risk};
use serde_json::{Value, json};

/// Thirty lines as a model writes them: calls, loops, a helper, a class, f-strings, names of results.
const PROGRAM: &str = r#"
import asyncio
from collections import Counter

# Look at everything first.
one, two = await asyncio.gather(first_toolkit.thing_1_list(owner="ada", page=1), first_toolkit.thing_2_list("ada"))
counts = Counter(item.title for item in one.items)
open_ones = [item for item in two.items if item.state == "open" and item.number > 10]

class Report:
    def __init__(self, title):
        self.title, self.lines = title, []

    def add(self, text):
        self.lines.append(text)
        return self

async def details(number):
    thing = await second_toolkit.thing_7_get(owner="ada", number=number)
    return f"{thing.title} ({thing.state})"

report_text = Report("Things")
for item in open_ones[:5]:
    try:
        report_text.add(await details(item.number))
    except ToolError as error:
        report_text.add(f"{item.number}: {error}")
for title, count in counts.most_common(3):
    report_text.add(f"{title:<20} {count:>4}")
if len(report_text.lines) > 3:
    await second_toolkit.thing_9_create(owner="ada", title=report_text.title, labels=["a", "b"])
await system_toolkit.send_message("\n".join(report_text.lines))
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let declarations = [toolkit("first_toolkit", 250), toolkit("second_toolkit", 245), system()];
    let config = Config::default();
    let shapes = BTreeMap::new();
    let known = Known {
        declarations: &declarations,
        carried: &[],
        shapes: &shapes,
        not_kept: &Default::default(),
        finish_length: false,
        config: &config,
    };
    let scaffold = Scaffold::new(&ScaffoldInput { goal: "report", ..ScaffoldInput::default() });
    let text = PROGRAM.trim();
    let wrong = text.replace("title=report_text.title", "titel=report_text.title");
    splice(&scaffold, text, &known).map_err(|refusal| refusal.to_string())?;
    println!("{:<60} {:>9} {:>9}", "", "p50 ms", "p99 ms");
    let lines = text.lines().count();
    row(&format!("check {lines} lines, 500 operations"), 2_000, || drop(black_box(splice(&scaffold, text, &known))));
    row("the same with a wrong keyword", 2_000, || drop(black_box(splice(&scaffold, &wrong, &known))));

    let large = [system(), toolkit("large_toolkit", 995)];
    let budget = Budget { whole: 3_000, names: 600 };
    row("stubs of 1,000 operations, in the budget of a prompt", 200, || drop(black_box(stubs(&large, budget))));
    row("stubs of 1,000 operations, all of them", 200, || drop(black_box(stubs(&large, Budget::ALL))));
    row("describe by words among 1,000 operations", 200, || {
        drop(black_box(described(&large, "close a thing that is open", 560)));
    });
    println!(
        "tokens of the 1,000: {} in the budget of a prompt, {} all",
        tokens(&large, budget),
        tokens(&large, Budget::ALL)
    );
    Ok(())
}

fn tokens(declarations: &[Declaration], budget: Budget) -> u32 {
    estimate_tokens(&stubs(declarations, budget))
}

fn row(what: &str, runs: usize, mut run: impl FnMut()) {
    run();
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let begun = Instant::now();
            run();
            begun.elapsed().as_secs_f64() * 1_000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    println!("{what:<60} {:>9.3} {:>9.3}", at(50), at(99));
}

/// A toolkit as a document of a large service gives: five verbs on each thing, typed parameters and results.
fn toolkit(name: &str, operations: usize) -> Declaration {
    let verbs = ["list", "get", "create", "update", "close"];
    let operations = (0..operations).map(|number| operation(number / verbs.len(), verbs[number % verbs.len()]));
    Declaration { name: name.to_owned(), description: "A service.".to_owned(), operations: operations.collect() }
}

fn operation(thing: usize, verb: &str) -> Operation {
    let (text, integer) = (json!({"type": "string"}), json!({"type": "integer"}));
    let item = json!({"type": "object", "properties": {
        "number": integer, "title": text, "state": {"enum": ["open", "closed"]}, "author": {"$ref": "#/$defs/Person"},
        "labels": {"type": "array", "items": text}, "created_at": text, "closed_at": {"type": ["string", "null"]},
    }});
    let person =
        json!({"type": "object", "properties": {"name": text, "id": integer, "is_admin": {"type": "boolean"}}});
    let definitions = json!({(format!("Thing{thing}")): item, "Person": person});
    let reference = json!({"$ref": format!("#/$defs/Thing{thing}")});
    let returns = match verb {
        "list" => json!({"type": "object", "title": format!("Things{thing}"), "$defs": definitions, "properties": {
            "items": {"type": "array", "items": reference}, "total": integer,
        }}),
        _ => json!({"anyOf": [reference, {"type": "null"}], "$defs": definitions}),
    };
    let rows: Vec<(&str, Value, bool)> = match verb {
        "list" => vec![("owner", text, true), ("page", integer, false)],
        "create" => vec![
            ("owner", text.clone(), true),
            ("title", text.clone(), true),
            ("labels", json!({"type": "array"}), false),
        ],
        _ => vec![("owner", text, true), ("number", integer, true)],
    };
    named(&format!("thing_{thing}_{verb}"), &format!("The {verb} of things of kind {thing}."), rows, returns)
}

fn named(name: &str, description: &str, rows: Vec<(&str, Value, bool)>, returns: Value) -> Operation {
    let parameters = rows.into_iter().map(|(name, schema, required)| Parameter {
        name: name.to_owned(),
        description: String::new(),
        schema,
        required,
        default: None,
    });
    Operation {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: parameters.collect(),
        returns,
        risk: Risk::Read,
        idempotent: true,
        timeout: None,
        enabled: true,
        paging: None,
    }
}

fn system() -> Declaration {
    let text = json!({"type": "string"});
    let operations = ["send_message", "describe", "ask_user", "now", "finish"];
    let operations =
        operations.map(|name| named(name, "Says.", vec![("text", text.clone(), true)], json!({"type": "null"})));
    Declaration {
        name: "system_toolkit".to_owned(),
        description: "The user.".to_owned(),
        operations: operations.into(),
    }
}
