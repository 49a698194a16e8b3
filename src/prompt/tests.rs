//! Whole prompts, as a model gets them.

use std::collections::BTreeMap;

use fimble_toolkit::{Operation, Paging, Parameter, Risk};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::stubs::LastStubs;
use super::*;
use crate::llm::{Input, Request};
use crate::segment::{SegmentKind, estimate_tokens};

fn operation(name: &str, description: &str, parameters: &[(&str, Value, Option<Value>)], returns: Value) -> Operation {
    let parameters = parameters.iter().map(|(name, schema, default)| Parameter {
        name: (*name).to_owned(),
        description: "One sentence.".to_owned(),
        schema: schema.clone(),
        required: default.is_none(),
        default: default.clone().filter(|value| !value.is_null()),
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

/// Three toolkits as they are declared in Rust.
fn declarations() -> Vec<Declaration> {
    let (text, integer) = (json!({"type": "string"}), json!({"type": "integer"}));
    let optional_text = json!({"type": ["string", "null"]});
    let commits = json!({
        "title": "Array_of_Commit", "type": "array", "items": {"$ref": "#/$defs/Commit"},
        "$defs": {"Commit": {"type": "object", "properties": {
            "sha": text, "short_sha": text, "author": text, "date": text, "subject": text,
        }}},
    });
    let disks = json!({"type": "array", "items": {"type": "object", "title": "Disk", "properties": {
        "mount": text, "size_gib": {"type": "number"}, "used_percent": {"type": "number"},
    }}});
    let null = json!({"type": "null"});
    vec![
        Declaration {
            name: "git_toolkit".to_owned(),
            description: "Commits and branches of one \"git\" repository.\n\nMore.".to_owned(),
            operations: vec![
                operation(
                    "log",
                    "Commits, newest first.",
                    &[("limit", integer, Some(json!(20))), ("path", optional_text, Some(Value::Null))],
                    commits,
                ),
                operation("branches", "Local branches.", &[], json!({"type": "array", "items": text})),
                Operation { enabled: false, ..operation("push", "Hidden.", &[], json!(true)) },
            ],
        },
        Declaration {
            name: "host_toolkit".to_owned(),
            description: "This machine.".to_owned(),
            operations: vec![operation("disks", "Mounted disks.", &[], disks)],
        },
        Declaration {
            name: "system_toolkit".to_owned(),
            description: "The user and the session.".to_owned(),
            operations: vec![
                operation("send_message", "Tell the user.", &[("text", text.clone(), None)], null),
                operation("describe", "Signatures of a toolkit.", &[("name", text.clone(), None)], text),
            ],
        },
    ]
}

fn segment(kind: SegmentKind, round: u64, content: &str) -> Segment {
    Segment { at: Timestamp::UNIX_EPOCH, ..Segment::new(kind, round, content) }
}

const SUFFIX: &str = "except Exception as error:\n    report(error)\n";

/// The request for these segments, with `change` applied to its input.
fn request(
    encoding: Encoding,
    segments: &[Segment],
    prefix: &str,
    attempts: &[Attempt],
    change: impl FnOnce(&mut PromptInput<'_>),
) -> Request {
    request_with(&declarations(), encoding, segments, prefix, attempts, change)
}

/// The same with other toolkits.
fn request_with(
    declarations: &[Declaration],
    encoding: Encoding,
    segments: &[Segment],
    prefix: &str,
    attempts: &[Attempt],
    change: impl FnOnce(&mut PromptInput<'_>),
) -> Request {
    let (templates, config) = (Templates::new(&BTreeMap::new()).unwrap(), Config::default());
    let mut input = PromptInput {
        encoding,
        declarations: &Arc::new(declarations.to_vec()),
        segments,
        earlier: 0,
        prefix,
        suffix: SUFFIX,
        attempts,
        context_tokens: None,
        templates: &templates,
        config: &config,
    };
    change(&mut input);
    assemble(&input).unwrap()
}

/// The request as text.
fn shown(request: &Request) -> String {
    let input = match &request.input {
        Input::Fill { prefix, suffix } => format!("{prefix}<hole>\n{suffix}"),
        Input::Chat(messages) => {
            let messages = messages.iter().map(|message| format!("=== {:?}\n{}\n", message.role, message.content));
            messages.collect()
        }
    };
    format!("max_tokens {} temperature {} stop {:?}\n{input}", request.max_tokens, request.temperature, request.stop)
}

fn snapshot(name: &str, segments: &[Segment], prefix: &str, attempts: &[Attempt]) {
    for (encoding, suffix) in [(Encoding::Chat, "chat"), (Encoding::Fill, "fill")] {
        let request = request(encoding, segments, prefix, attempts, |_| {});
        insta::assert_snapshot!(format!("{name}_{suffix}"), shown(&request));
    }
}

fn first_turn() -> Vec<Segment> {
    vec![segment(SegmentKind::Context, 0, "language: en"), segment(SegmentKind::User, 0, "Who committed\nlast?")]
}

fn second_turn() -> Vec<Segment> {
    let mut segments = first_turn();
    segments.extend([
        segment(SegmentKind::Code, 1, "commits = await git_toolkit.log(limit=1)\nprint(commits)\n"),
        segment(SegmentKind::Output, 1, "[Record(sha='abc', author='Ann')]\n"),
        segment(SegmentKind::Code, 2, "await system_toolkit.send_message(f\"{commits[0].author}\")\n"),
        segment(SegmentKind::Reply, 2, "Ann"),
        segment(SegmentKind::User, 2, "And which branches are there?"),
    ]);
    segments
}

#[test]
fn a_first_turn() {
    snapshot("first_turn", &first_turn(), "# goal: Who committed last?\ntry:\n", &[]);
}

#[test]
fn a_round_after_an_exception_goes_on_by_infill() {
    let mut segments = first_turn();
    segments.extend([
        segment(SegmentKind::Code, 1, "commits = await git_toolkit.log(limit=1)\nprint(commits[0].name)\n"),
        segment(
            SegmentKind::Output,
            1,
            "Traceback:\n  line 2: print(commits[0].name)\nAttributeError: no field `name`",
        ),
    ]);
    let prefix = "commits: list[Record] = ...  # [Record(sha='abc')], round 1\n# goal: Who committed last?\ntry:\n    \
        # already done, its names are kept:\n    commits = await git_toolkit.log(limit=1)\n    \
        # this failed and must be written differently:\n    # print(commits[0].name)\n    # AttributeError: no field `name`\n";
    snapshot("infill", &segments, prefix, &[]);
}

#[test]
fn a_refused_hole_is_asked_for_again() {
    let attempts = [Attempt { notes: vec!["`git_toolkit` has no operation `logs`; did you mean `log`".to_owned()] }];
    snapshot("refused", &first_turn(), "# goal: Who committed last?\ntry:\n", &attempts);
}

#[test]
fn a_later_turn_has_the_conversation_and_the_variables() {
    let prefix = "# carried from earlier rounds\ncommits: list[Record] = ...  # [Record(sha='abc')], round 1\n\
        # goal: And which branches are there?\ntry:\n";
    snapshot("later_turn", &second_turn(), prefix, &[]);
}

#[test]
fn a_prompt_grows_only_at_its_end() {
    let prefix = "# goal: x\ntry:\n";
    let Input::Fill { prefix: first, .. } = request(Encoding::Fill, &first_turn(), prefix, &[], |_| {}).input else {
        panic!()
    };
    let Input::Fill { prefix: second, .. } = request(Encoding::Fill, &second_turn(), prefix, &[], |_| {}).input else {
        panic!()
    };
    let shared = first.strip_suffix(prefix).unwrap();
    assert!(second.starts_with(shared));

    let Input::Chat(first) = request(Encoding::Chat, &first_turn(), prefix, &[], |_| {}).input else { panic!() };
    let Input::Chat(second) = request(Encoding::Chat, &second_turn(), prefix, &[], |_| {}).input else { panic!() };
    let (last, earlier) = first.split_last().unwrap();
    assert_eq!(&second[..earlier.len()], earlier);
    assert!(last.content.starts_with(&second[earlier.len()].content));
}

#[test]
fn the_oldest_segments_make_room() {
    let mut segments: Vec<Segment> = (0..40)
        .map(|number| segment(SegmentKind::Output, number, &format!("output {number} {}", "x".repeat(400))))
        .collect();
    segments.push(segment(SegmentKind::User, 40, "Go on"));
    for encoding in [Encoding::Chat, Encoding::Fill] {
        let text = shown(&request(encoding, &segments, "try:\n", &[], |input| input.context_tokens = Some(4_096)));
        assert!(text.contains("[24 earlier segments left out]"), "{text}");
        assert!(!text.contains("output 23 ") && text.contains("output 24 ") && text.contains("Go on"), "{text}");
        // Even where nothing fits, what the user said last is there.
        let text = shown(&request(encoding, &segments, "try:\n", &[], |input| input.context_tokens = Some(100)));
        assert!(text.contains("[40 earlier segments left out]") && text.contains("Go on"), "{text}");
    }
}

#[test]
fn long_outputs_are_shown_in_part() {
    let segments =
        [segment(SegmentKind::User, 0, "Go"), segment(SegmentKind::Output, 1, &"row of a table\n".repeat(10_000))];
    let text = shown(&request(Encoding::Chat, &segments, "try:\n", &[], |_| {}));
    assert!(text.len() < 8_000 && text.contains(" lines left out …"), "{}", text.len());
}

#[test]
fn the_example_is_one_that_the_toolkits_allow() {
    let text = shown(&request_with(&[], Encoding::Chat, &first_turn(), "try:\n", &[], |_| {}));
    assert!(text.contains("17 % of 2,340") && !text.contains("git_toolkit"), "{text}");
}

#[test]
fn what_operations_share_is_told_once_and_larger_results_inherit() {
    let text = json!({"type": "string"});
    let object = |title: &str, fields: &[&str]| {
        let fields: serde_json::Map<_, _> = fields.iter().map(|field| ((*field).to_owned(), text.clone())).collect();
        json!({"type": "object", "title": title, "properties": fields})
    };
    let operation = |name, names: &[&'static str], returns| {
        let parameters: Vec<_> = names.iter().map(|name| (*name, text.clone(), Some(Value::Null))).collect();
        operation(name, "Looks.\nOn two lines.\n\nNotes.", &parameters, returns)
    };
    let part = ["author", "subject", "text_of_it"];
    let mut declaration = Declaration {
        name: "box_toolkit".to_owned(),
        description: "Boxes.".to_owned(),
        operations: vec![
            operation("one", &["path", "folder"], object("Part", &part)),
            operation("two", &["folder"], object("Whole", &[&part[..], &["weight"]].concat())),
            operation("three", &["folder", "limit"], text.clone()),
        ],
    };
    let whole = "\
class Part: author: str; subject: str; text_of_it: str
class Whole(Part): weight: str
class box_toolkit: \"Boxes.\"
    # All of these also take folder: str = None
    async def one(path: str = None) -> Part: \"Looks. On two lines.\"
    async def two() -> Whole: \"Looks. On two lines.\"
    async def three(limit: str = None) -> str: \"Looks. On two lines.\"";
    assert_eq!(stubs(std::slice::from_ref(&declaration), Budget { whole: 3_000, names: 600 }), whole);

    // Of two operations, each tells its own.
    declaration.operations.pop();
    let text = stubs(&[declaration], Budget { whole: 3_000, names: 600 });
    assert!(text.contains("async def two(folder: str = None) -> Whole") && !text.contains("All of these"), "{text}");
}

#[test]
fn toolkits_beyond_the_budget_are_told_by_name() {
    insta::assert_snapshot!("stubs_whole", stubs(&declarations(), Budget { whole: 3_000, names: 600 }));
    insta::assert_snapshot!("stubs_brief", stubs(&declarations(), Budget { whole: 110, names: 110 }));
}

/// Whoever declares pages need not tell what a program makes of them.
#[test]
fn stubs_tell_what_goes_through_all_pages() {
    let paged = |name: &str, returns: Value| Operation {
        paging: Some(Paging::new("cursor", "next", "rows")),
        ..operation(name, "Rows.", &[("cursor", json!({"type": "string"}), Some(Value::Null))], returns)
    };
    let seen = json!({"type": "object", "properties": {"rows": {"type": "array"}}, "x-learnt": 2});
    let learnt = Operation { returns: seen, ..paged("seen", json!(true)) };
    let declaration = Declaration {
        name: "rows_toolkit".to_owned(),
        description: "Rows.".to_owned(),
        operations: vec![paged("rows", json!(true)), learnt, operation("one", "A row.", &[], json!(true))],
    };
    let shown = stubs(&[declaration], Budget::ALL);
    let lines: Vec<&str> = shown.lines().filter(|line| line.starts_with("    async def")).collect();
    let expected = [
        "    async def rows(cursor: str = None): \"Rows.\"  # async for gets the items of all pages",
        "    async def seen(cursor: str = None) -> Seen: \"Rows.\"  # async for gets the items of all pages; as seen so far",
        "    async def one(): \"A row.\"",
    ];
    assert_eq!(lines, expected);
}

/// A toolkit as large as that of a forge: verbs on many kinds of things, each with parameters and a typed result.
fn forge() -> Declaration {
    let things = [
        "issue",
        "pull_request",
        "branch",
        "release",
        "label",
        "milestone",
        "webhook",
        "secret",
        "variable",
        "runner",
        "workflow",
        "artifact",
        "environment",
        "deployment",
        "package",
        "team",
        "member",
        "invitation",
        "key",
        "gist",
        "project",
        "column",
        "card",
        "comment",
        "reaction",
        "commit",
        "tag",
        "tree",
        "blob",
        "status",
        "check_run",
        "check_suite",
        "code_scan",
        "advisory",
        "dependency",
        "license",
        "template",
        "topic",
        "fork",
        "star",
    ];
    let verbs = [
        "list",
        "get",
        "create",
        "update",
        "delete",
        "search",
        "lock",
        "unlock",
        "enable",
        "disable",
        "archive",
        "restore",
        "transfer",
        "approve",
        "reject",
        "assign",
        "unassign",
        "rename",
        "export",
        "import",
        "subscribe",
        "unsubscribe",
        "pin",
        "unpin",
        "history",
    ];
    let (text, integer) = (json!({"type": "string"}), json!({"type": "integer"}));
    let operations = things.iter().flat_map(|thing| {
        let (text, integer) = (text.clone(), integer.clone());
        verbs.iter().map(move |verb| {
            let fields: serde_json::Map<String, Value> =
                (0..30).map(|number| (format!("{thing}_field_{number}"), text.clone())).collect();
            let returns = json!({"type": "object", "title": format!("{verb} {thing}"), "properties": fields});
            let parameters = [
                ("owner", text.clone(), None),
                ("repository", text.clone(), None),
                (*thing, integer.clone(), Some(Value::Null)),
                ("page", integer.clone(), Some(json!(1))),
            ];
            let description = format!("{verb} a {} of a repository.", thing.replace('_', " "));
            operation(&format!("{thing}_{verb}"), &description, &parameters, returns)
        })
    });
    Declaration {
        name: "forge_toolkit".to_owned(),
        description: "A forge.".to_owned(),
        operations: operations.collect(),
    }
}

/// Tokens of what a text has beside the same text without toolkits.
fn tokens_beside(text: &str, without: &str) -> u32 {
    estimate_tokens(text) - estimate_tokens(without)
}

#[test]
fn three_of_a_thousand_operations_cost_less_than_2500_tokens_of_the_prompt() {
    let mut all = declarations();
    all.push(forge());
    assert!(all.iter().map(|toolkit| toolkit.operations.len()).sum::<usize>() > 1_000);
    let question = "Create an issue about the failed deployment, assign it, and tell me the release history";
    let mut segments = vec![segment(SegmentKind::User, 0, question)];
    let ask = |segments: &[Segment], declarations: &[Declaration]| {
        shown(&request_with(declarations, Encoding::Chat, segments, "# goal: x\ntry:\n", &[], |_| {}))
    };
    let first = ask(&segments, &all);
    let small = declarations();
    let without: Vec<Declaration> = small.into_iter().filter(|toolkit| toolkit.name == "system_toolkit").collect();
    let of_first = tokens_beside(&first, &ask(&segments, &without));
    // What is wanted is there without a further question.
    for wanted in ["async def issue_create(", "async def issue_assign(", "async def release_history("] {
        assert!(first.contains(wanted), "{wanted} is not in\n{first}");
    }
    // And the same by asking for it.
    let asked = ["create an issue", "forge_toolkit.issue_assign, forge_toolkit.release_history"];
    for (round, asked) in (1..).zip(asked) {
        let described = described(&all, asked, 560).unwrap();
        segments.push(segment(SegmentKind::Code, round, &format!("print(await system_toolkit.describe({asked:?}))")));
        segments.push(segment(SegmentKind::Output, round, &described));
    }
    let last = ask(&segments, &all);
    let of_last = tokens_beside(&last, &ask(&segments[..1], &without));
    assert!(of_first < 1_500 && of_last < 2_500, "{of_first} and {of_last}\n{last}");
    for wanted in ["async def issue_create(", "async def issue_assign(", "async def release_history("] {
        assert!(segments.iter().any(|segment| segment.content.contains(wanted)), "{wanted}");
    }
    insta::assert_snapshot!("forge_described", described(&all, asked[1], 560).unwrap());
    insta::assert_snapshot!("forge_brief", stubs(&[forge()], Budget { whole: 600, names: 300 }));
}

#[test]
fn what_is_asked_for_is_found_by_name_and_by_words() {
    let mut all = declarations();
    all.push(forge());
    let told = |what: &str| described(&all, what, 560).unwrap_or_default();
    assert!(told("git_toolkit").contains("async def log(") && told("git_toolkit").contains("async def branches("));
    assert!(told("git_toolkit.log").contains("async def log(") && !told("git_toolkit.log").contains("def branches"));
    assert!(told("forge_toolkit").contains("1000 operations:"), "{}", told("forge_toolkit"));
    assert!(told("forge_toolkit.gist_*").contains("async def gist_list("));
    assert!(told("mounted disks").contains("async def disks("));
    assert!(told("approve a pull request").contains("async def pull_request_approve("));
    assert_eq!(described(&all, "forge_toolkit.nothing_there", 560), None);
    assert_eq!(described(&all, "the of and", 560), None);
    for what in ["forge_toolkit", "forge_toolkit.gist_*", "approve a pull request", "git_toolkit"] {
        assert!(estimate_tokens(&told(what)) <= 620, "{what}: {}", estimate_tokens(&told(what)));
    }
}

#[test]
fn stubs_are_made_again_only_for_other_toolkits_or_another_budget() {
    let (last, some) = (LastStubs::default(), Arc::new(declarations()));
    let [wide, narrow] = [(3_000, 600), (110, 110)].map(|(whole, names)| Budget { whole, names });
    let first = last.get(&some, wide);
    assert_eq!(first.text, stubs(&some, wide));
    assert!(Arc::ptr_eq(&first, &last.get(&some, wide)) && first.briefly(&some).is_empty());
    let brief = last.get(&some, narrow);
    assert_eq!(brief.text, stubs(&some, narrow));
    let names: Vec<&str> = brief.briefly(&some).iter().map(|declaration| declaration.name.as_str()).collect();
    assert!(!names.is_empty() && names.iter().all(|name| brief.text.contains(name)), "{names:?}");
    let fewer = Arc::new(some[1..].to_vec());
    assert_eq!(last.get(&fewer, narrow).text, stubs(&fewer, narrow));
}
