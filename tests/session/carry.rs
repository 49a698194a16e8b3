//! Which variables a program starts with, and that Python can restore them in that order.

use std::collections::BTreeSet;

use fimble::interpreter::Captured;
use fimble::record::VariableKind::{self, Definition, Import, Value};
use fimble::session::written_variable;

use super::{Place, begin, captured, finished};

type Variable = (&'static str, VariableKind, &'static str, &'static [&'static str]);

/// The names that are carried for `names`, by a session whose rounds wrote the variables of `rounds`.
async fn carried(rounds: &[&[Variable]], names: &[&str]) -> Vec<String> {
    let place = Place::new();
    let mut session = place.create().await;
    for round in rounds {
        let begun = begin(&mut session).await;
        let written = (1..).zip(*round).map(|(line, (name, kind, content, references))| {
            let captured = Captured { line, ..captured(name, *kind, content, references) };
            written_variable(captured, begun.number)
        });
        session.commit_round(finished(begun.clone()), written.collect(), vec![]).await.unwrap();
    }
    let names: BTreeSet<String> = names.iter().map(|&name| name.into()).collect();
    let carried = place.reopen(&session).await.carried(&names).await.unwrap();
    for carried in &carried {
        let written = rounds.iter().rev().flat_map(|round| round.iter()).find(|(name, ..)| *name == carried.name);
        assert_eq!(
            Some((carried.kind, carried.content.as_str())),
            written.map(|(_, kind, content, _)| (*kind, *content))
        );
    }
    carried.into_iter().map(|carried| carried.name).collect()
}

#[tokio::test]
async fn a_name_brings_all_that_it_reaches_and_nothing_else() {
    let round: &[Variable] = &[
        ("unused", Value, "1", &[]),
        ("limit", Value, "5", &[]),
        ("json", Import, "import json", &[]),
        ("os", Import, "import os", &[]),
        ("inner", Definition, "def inner():\n    return json.dumps(limit)", &["json", "limit"]),
        ("outer", Definition, "def outer():\n    return inner()", &["inner", "len"]),
    ];
    assert_eq!(carried(&[round], &["outer", "print"]).await, ["json", "inner", "outer", "limit"]);
    assert_eq!(carried(&[round], &["limit"]).await, ["limit"]);
    assert_eq!(carried(&[round], &["nothing"]).await, [""; 0]);
}

#[tokio::test]
async fn a_definition_comes_after_what_defines_it_even_if_that_is_younger() {
    let first: &[Variable] = &[
        ("Base", Definition, "class Base: pass", &[]),
        ("Child", Definition, "class Child(Base):\n    size = width", &["Base", "width"]),
        ("width", Value, "3", &[]),
    ];
    let second: &[Variable] =
        &[("Base", Definition, "class Base:\n    def make(self):\n        return Child()", &["Child"])];
    // They refer to each other, and only one order can be run.
    assert_eq!(carried(&[first, second], &["Child"]).await, ["Base", "width", "Child"]);
}

#[tokio::test]
async fn what_a_decorator_or_default_calls_is_there_when_it_is_called() {
    let first: &[Variable] = &[
        ("job", Definition, "@register\ndef job(count=start()):\n    later()", &["register", "start", "later"]),
        ("later", Definition, "def later(): pass", &[]),
    ];
    let second: &[Variable] = &[
        ("register", Definition, "def register(function):\n    jobs[note(function)] = 1", &["jobs", "note"]),
        ("note", Definition, "def note(function) -> 'str': return prefix", &["prefix"]),
        ("start", Definition, "start = lambda: first", &["first"]),
        ("jobs", Value, "{}", &[]),
        ("prefix", Value, "\"p\"", &[]),
        ("first", Value, "1", &[]),
    ];
    let order = carried(&[first, second], &["job"]).await;
    let at = |name: &str| order.iter().position(|found| found == name).unwrap();
    assert_eq!(order.len(), 8, "{order:?}");
    for needed in ["register", "note", "start", "jobs", "prefix", "first"] {
        assert!(at(needed) < at("job"), "{order:?}");
    }
}

#[tokio::test]
async fn a_value_brings_the_classes_it_has_instances_of() {
    let round: &[Variable] = &[
        ("point", Value, r#"{"$": "dataclass", "class": "Point", "fields": {"x": 1}}"#, &[]),
        ("word", Value, r#"["Pointer", "a Pointless word"]"#, &[]),
        ("Point", Definition, "@dataclass\nclass Point:\n    x: Number", &["dataclass", "Number"]),
        ("Number", Value, "1", &[]),
        ("dataclass", Import, "from dataclasses import dataclass", &[]),
        ("origin", Definition, "def origin(start=point): return start", &["point"]),
    ];
    assert_eq!(carried(&[round], &["point"]).await, ["dataclass", "Number", "Point", "point"]);
    assert_eq!(carried(&[round], &["word"]).await, ["word"]);
    assert_eq!(carried(&[round], &["origin"]).await, ["dataclass", "Number", "Point", "point", "origin"]);
}

#[tokio::test]
async fn circles_and_sources_that_do_not_parse_still_have_an_order() {
    let round: &[Variable] = &[
        ("even", Definition, "def even(n): return n == 0 or odd(n - 1)", &["odd"]),
        ("odd", Definition, "def odd(n): return n != 0 and even(n - 1)", &["even"]),
        ("selfish", Definition, "def selfish(): return selfish()", &["selfish"]),
        ("broken", Definition, "def broken(:", &["even", "late"]),
        ("late", Definition, "def late(): pass", &[]),
        ("left", Definition, "class left(right): pass", &["right"]),
        ("right", Definition, "class right(left): pass", &["left"]),
    ];
    let names = ["odd", "selfish", "broken", "left"];
    let expected = ["even", "odd", "selfish", "late", "broken", "right", "left"];
    assert_eq!(carried(&[round], &names).await, expected);
}

#[tokio::test]
async fn a_chain_of_definitions_may_be_long() {
    let place = Place::new();
    let mut session = place.create().await;
    let round = begin(&mut session).await;
    let written = (0..2_000).map(|number| {
        let (name, next) = (format!("f{number}"), format!("f{}", number + 1));
        let source = format!("def {name}(inner={next}): return inner");
        written_variable(captured(&name, Definition, &source, &[&next]), 1)
    });
    session.commit_round(finished(round), written.collect(), vec![]).await.unwrap();
    let carried = session.carried(&BTreeSet::from(["f0".to_string()])).await.unwrap();
    let order: Vec<String> = carried.into_iter().map(|carried| carried.name).collect();
    assert_eq!(order, (0..2_000).rev().map(|number| format!("f{number}")).collect::<Vec<_>>());
}
