//! Cards at their doors: what may be shown, as text and as A2UI, and what an answer means.

use std::collections::BTreeSet;

use fimble_card::{Card, ChartStyle, Field, FieldKind, Limits};
use fimble_toolkit::Risk;
use proptest::prelude::*;
use serde_json::{Value, json};

fn field(name: &str, kind: FieldKind, default: Option<Value>) -> Field {
    let options = if kind == FieldKind::Choice { vec!["small".to_owned(), "large".to_owned()] } else { Vec::new() };
    Field { name: name.to_owned(), label: String::new(), kind, options, default }
}

fn form() -> Card {
    let fields = vec![
        field("name", FieldKind::Str, None),
        field("count", FieldKind::Int, Some(json!(2))),
        field("size", FieldKind::Choice, Some(json!("small"))),
        field("now", FieldKind::Bool, Some(json!(false))),
    ];
    Card::Form { title: "Order".to_owned(), fields }
}

fn choice(many: bool) -> Card {
    let options = ["one", "two", "Three"].map(str::to_owned).into();
    Card::Choice { title: "Which?".to_owned(), options, many }
}

fn operation() -> Card {
    let details = vec![("unit".to_owned(), "nginx".to_owned()), ("on".to_owned(), "web-1".to_owned())];
    Card::Operation { title: "Restart".to_owned(), details, risk: Risk::Destructive }
}

/// One of each kind.
fn all() -> Vec<Card> {
    let table = Card::Table {
        title: "Disks".to_owned(),
        columns: vec!["path".to_owned(), "free".to_owned()],
        rows: vec![vec!["/".to_owned(), "12".to_owned()], vec!["/home".to_owned(), "7".to_owned()]],
    };
    let points = vec![("mon".to_owned(), 4.0), ("tue".to_owned(), -2.0)];
    vec![
        Card::HandOver { reason: "The disk is broken".to_owned(), summary: String::new() },
        operation(),
        choice(false),
        choice(true),
        form(),
        table,
        Card::Chart { title: "Load".to_owned(), style: ChartStyle::Bar, points },
        Card::Links { title: "See".to_owned(), links: vec![("docs".to_owned(), "https://example.org/a".to_owned())] },
        Card::Progress { title: "Copy".to_owned(), done: 1.0, total: 4.0, note: "file 3".to_owned() },
    ]
}

#[test]
fn each_kind_reads_as_text() {
    let texts: Vec<String> = all().into_iter().map(|card| card.checked(&Limits::default()).unwrap().text()).collect();
    let expected = [
        "A person must take over: The disk is broken\nAnswer with what you did, or what is to be done",
        "Restart (destructive)\n  unit  nginx\n  on    web-1\nAnswer confirm or cancel",
        "Which?\n  1. one\n  2. two\n  3. Three\nAnswer with a number",
        "Which?\n  1. one\n  2. two\n  3. Three\nAnswer with numbers, e.g. 1, 2, or none",
        "Order\n  name: text\n  count: whole number; else 2\n  size: small / large; else \"small\"\n  now: yes or no; else false\n\
         Answer as name=…; count=…; size=…",
        "Disks\n  path   free\n  /      12\n  /home  7",
        "Load\n  mon  ############################## 4\n  tue  --------------- -2",
        "See\n  docs: https://example.org/a",
        "Copy [########----------------------] 25 % file 3",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn each_kind_is_whole_a2ui() {
    for card in all() {
        let messages = card.messages("s1");
        let kinds: Vec<&str> =
            messages.iter().map(|message| message.as_object().unwrap().keys().nth(1).unwrap().as_str()).collect();
        assert_eq!(kinds, ["createSurface", "updateComponents", "updateDataModel"]);
        assert!(messages.iter().all(|message| message["version"] == "v0.9"));
        let components = messages[1]["updateComponents"]["components"].as_array().unwrap();
        let ids: BTreeSet<&str> = components.iter().map(|component| component["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), components.len(), "{components:?}");
        assert!(ids.contains("root"));
        // Every component but the root has one parent, and every binding has its data.
        let mut named: Vec<&str> = Vec::new();
        for component in components {
            named.extend(component["child"].as_str());
            named.extend(component["children"].as_array().into_iter().flatten().filter_map(Value::as_str));
            for bound in [&component["value"], &component["text"]] {
                let data = &messages[2]["updateDataModel"]["value"];
                assert!(bound["path"].as_str().is_none_or(|path| data.pointer(path).is_some()), "{component}");
            }
        }
        let children: BTreeSet<&str> = named.iter().copied().collect();
        assert_eq!((children.len(), children.len() + 1), (named.len(), ids.len()));
        assert!(children.is_subset(&ids));
    }
    let update = all().pop().unwrap().update("s1");
    let state = "█████░░░░░░░░░░░░░░░ 25 % file 3";
    let value = json!({"state": state, "done": 1.0, "total": 4.0});
    assert_eq!(
        update,
        [json!({"version": "v0.9", "updateDataModel": {"surfaceId": "s1", "path": "/", "value": value}})]
    );
}

#[test]
fn answers_are_typed_or_clicked() {
    let event = |name: &str, context: Value| {
        json!({"action": {"name": name, "surfaceId": "s1", "context": context}}).to_string()
    };
    let filled = json!({"name": "Ada", "count": 3, "size": "large", "now": true});
    for (card, said, expected) in [
        (operation(), "confirm".to_owned(), json!(true)),
        (operation(), "N".to_owned(), json!(false)),
        (operation(), event("cancel", json!({})), json!(false)),
        (choice(false), "2".to_owned(), json!("two")),
        (choice(false), "three".to_owned(), json!("Three")),
        (choice(false), event("submit", json!({"choice": ["one"]})), json!("one")),
        (choice(true), "3, 1, 3".to_owned(), json!(["Three", "one"])),
        (choice(true), "none".to_owned(), json!([])),
        (choice(true), event("submit", json!({"choice": []})), json!([])),
        (form(), "name=Ada; count=3; size=2; now=yes".to_owned(), filled.clone()),
        (form(), r#"{"name": "Ada", "count": 3, "size": "large", "now": true}"#.to_owned(), filled.clone()),
        (form(), event("submit", json!({"name": "Ada", "count": "3", "size": ["large"], "now": true})), filled),
        (form(), "name=a=b".to_owned(), json!({"name": "a=b", "count": 2, "size": "small", "now": false})),
        (all().remove(0), " I changed it ".to_owned(), json!("I changed it")),
        (all().remove(0), event("submit", json!({"note": "done"})), json!("done")),
    ] {
        assert_eq!(card.reply("s1", &said), Ok(expected), "{said}");
    }
    let one = Card::Form { title: "Size?".to_owned(), fields: vec![field("size", FieldKind::Int, None)] };
    assert_eq!((one.reply("s1", "7"), one.reply("s1", "size=8")), (Ok(json!({"size": 7})), Ok(json!({"size": 8}))));
    let elsewhere = event("confirm", json!({})).replace("s1", "s2");
    let refused = operation().reply("s1", &elsewhere).unwrap_err();
    assert_eq!(refused, "it is of the card on `s2`, and the one on `s1` waits");
    let nowhere = r#"{"name": "confirm", "context": {}}"#;
    assert_eq!(operation().reply("s1", nowhere), Ok(json!(true)));
    for (card, said, part) in [
        (operation(), "perhaps", "confirm or cancel"),
        (choice(false), "4", "from 1 to 3"),
        (choice(false), "0", "from 1 to 3"),
        (choice(true), "1, 9", "numbers from 1 to 3"),
        (form(), "count=3", "`name` must be filled in"),
        (form(), "name=x; count=many", "`count` must be a whole number"),
        (form(), "name=x; colour=red", "there is no field `colour`"),
        (form(), "Ada", "has no `=`"),
        (all().remove(0), "  ", "say what you did"),
        (all().remove(5), "1", "it asks nothing"),
    ] {
        let refused = card.reply("s1", said).unwrap_err();
        assert!(refused.contains(part), "{said}: {refused}");
    }
}

#[test]
fn what_is_too_much_or_makes_no_sense_is_refused() {
    let rows = |count: usize| vec![vec!["x".to_owned()]; count];
    let table =
        |columns: usize, rows| Card::Table { title: "T".to_owned(), columns: vec!["c".to_owned(); columns], rows };
    let links =
        |address: &str| Card::Links { title: "L".to_owned(), links: vec![("x".to_owned(), address.to_owned())] };
    let chart = |value: f64| Card::Chart {
        title: "C".to_owned(),
        style: ChartStyle::Line,
        points: vec![("x".to_owned(), value)],
    };
    let progress = |done, total| Card::Progress { title: "P".to_owned(), done, total, note: String::new() };
    let titled = |title: &str| Card::Choice { title: title.to_owned(), options: vec!["a".to_owned()], many: false };
    let chosen = |options: &[&str]| {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        Card::Choice { title: "Which?".to_owned(), options, many: false }
    };
    let fields = |fields| Card::Form { title: "F".to_owned(), fields };
    for (card, part) in [
        (table(1, rows(501)), "501 rows, more than the 500"),
        (table(21, Vec::new()), "21 columns"),
        (table(0, Vec::new()), "no columns"),
        (table(2, rows(1)), "a row has 1 cells, and there are 2 columns"),
        (links("javascript:alert(1)"), "no address that can be shown"),
        (links("https://a b"), "no address that can be shown"),
        (links("https://a\u{202e}b"), "no address that can be shown"),
        (chart(f64::NAN), "no finite number"),
        (progress(5.0, 4.0), "5 of 4 is no progress"),
        (progress(0.0, 0.0), "no progress"),
        (titled(" \u{1b}\u{202e} "), "no title"),
        (chosen(&[]), "no options"),
        (chosen(&["a", "a"]), "an option is there twice"),
        (chosen(&["\u{7}"]), "an option is empty"),
        (fields(vec![field("2nd", FieldKind::Str, None)]), "no Python name"),
        (fields(vec![field("a", FieldKind::Str, None), field("a", FieldKind::Int, None)]), "two fields have one name"),
        (fields(vec![field("a", FieldKind::Int, Some(json!("x")))]), "the default of `a` is not of its type"),
    ] {
        let refused = card.checked(&Limits::default()).unwrap_err();
        assert!(refused.message.contains(part) && refused.hint.is_some(), "{refused}");
    }
}

proptest! {
    #[test]
    fn hostile_words_drive_no_terminal_and_stay_on_their_line(
        words in proptest::collection::vec(any::<String>(), 3),
        said in any::<String>(),
    ) {
        let title = format!("t{}", words[0]);
        let cards = [
            Card::Table { title: title.clone(), columns: vec!["c".to_owned()], rows: vec![vec![words[1].clone()]] },
            Card::Choice { title: title.clone(), options: vec![format!("a{}", words[1]), "b".to_owned()], many: true },
            Card::Operation { title, details: vec![(words[1].clone(), words[2].clone())], risk: Risk::Read },
        ];
        for card in cards {
            // Two options may come out the same.
            let Ok(card) = card.checked(&Limits::default()) else { continue };
            let text = card.text();
            let hidden = |character: char| {
                (character.is_control() && character != '\n') || ('\u{202a}'..='\u{202e}').contains(&character)
            };
            prop_assert!(!text.contains(hidden), "{text:?}");
            let lines = match &card {
                Card::Table { .. } | Card::Operation { .. } => 3,
                _ => 4,
            };
            // A table's last cell may be empty and end with its line.
            prop_assert!(text.lines().count() <= lines, "{text:?}");
            let again = card.clone().checked(&Limits::default());
            prop_assert_eq!(again.as_ref(), Ok(&card));
            let _ = card.reply("s1", &said);
        }
        let _ = form().reply("s1", &said);
    }
}
