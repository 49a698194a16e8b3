//! What is refused, with the exact words the model gets.

use super::*;

fn check(rows: &[(&str, &str)]) {
    for (text, findings) in rows {
        assert_eq!(message(text), format!("The program was not run\n- {findings}"), "from {text}");
    }
}

#[test]
fn wrong_argument_names_are_refused_with_the_signature() {
    // The sample that the method's own article gives as the expected fill.
    let sample = "result = devops_toolkit.search_requirements(id=123, keyword=\"login\")\n\
        if result.get('success'):\n    print(result['data'])";
    check(&[(
        sample,
        "line 1: `devops_toolkit.search_requirements`: it has no parameter `id`, did you mean `project_id`; \
         it has no parameter `keyword`; `project_id` is missing; `query` is missing; \
         its signature is `search_requirements(project_id: str, query: str)`; \
         write `await devops_toolkit.search_requirements(project_id=\"123\", query=\"login\")`",
    )]);
    // What the message says to write is what runs.
    let told = message(sample);
    let call = told.rsplit_once("write `").and_then(|(_, call)| call.strip_suffix('`')).unwrap();
    let repaired = sample.replace("devops_toolkit.search_requirements(id=123, keyword=\"login\")", call);
    assert_eq!(hole(&repaired), (format!("{repaired}\n"), Vec::new()));
}

#[test]
fn calls_are_held_against_their_declaration() {
    check(&[
        (
            "x = await git_toolkit.logs()",
            "line 1: `git_toolkit` has no operation `logs`; did you mean `log`; it has: log, show, branches, status",
        ),
        (
            "await git_toolkit.push()",
            "line 1: `git_toolkit` has no operation `push`; it has: log, show, branches, status",
        ),
        (
            "x = 1\ny = foo_toolkit.bar()",
            "line 2: there is no toolkit `foo_toolkit`; there are: git_toolkit, host_toolkit, files_toolkit, \
             system_toolkit, ops_toolkit, devops_toolkit",
        ),
        (
            "x = await file_toolkit.list()",
            "line 1: there is no toolkit `file_toolkit`; did you mean `files_toolkit`? There are: git_toolkit, \
             host_toolkit, files_toolkit, system_toolkit, ops_toolkit, devops_toolkit",
        ),
        (
            "await git_toolkit.log(5, 'a', 'b')",
            "line 1: `git_toolkit.log`: takes at most 2 arguments, got 3; \
             its signature is `log(limit: int = 20, path: str = None)`",
        ),
        (
            "await git_toolkit.log(5, limit=6)",
            "line 1: `git_toolkit.log`: `limit` is given twice; \
             its signature is `log(limit: int = 20, path: str = None)`",
        ),
        (
            "await git_toolkit.log(limit='5')",
            "line 1: `git_toolkit.log`: `limit` is the str \"5\", not int; \
             its signature is `log(limit: int = 20, path: str = None)`; write `await git_toolkit.log(limit=5)`",
        ),
        (
            "await host_toolkit.processes(sort='name', limit=1.5)",
            "line 1: `host_toolkit.processes`: `sort` is the str \"name\", not Literal[\"cpu\", \"memory\"]; \
             `limit` is the float 1.5, not int; \
             its signature is `processes(sort: Literal[\"cpu\", \"memory\"] = \"cpu\", limit: int = 10)`",
        ),
        (
            "await files_toolkit.search('x', paths=['a', 1])",
            "line 1: `files_toolkit.search`: `paths` is a list, not list[str]; \
             its signature is `search(pattern: str, paths: list[str] = [])`",
        ),
        (
            "await system_toolkit.send_message(None)",
            "line 1: `system_toolkit.send_message`: `text` is None, not str; \
             its signature is `send_message(text: str) -> None`",
        ),
        (
            "x = await git_toolkit('log')",
            "line 1: `git_toolkit` is an object, not a function: call one of its operations, `await git_toolkit.…(…)` \
             with log, show, branches, status",
        ),
    ]);
}

#[test]
fn a_toolkits_name_cannot_be_bound() {
    let rows = [
        "git_toolkit = 1",
        "class git_toolkit: pass",
        "def git_toolkit(): pass",
        "import os as git_toolkit",
        "for git_toolkit in []: pass",
        "with open('x') as git_toolkit: pass",
        "try: pass\nexcept E as git_toolkit: pass",
        "del git_toolkit",
        "def f():\n    global git_toolkit\n    git_toolkit = 1",
        "print(git_toolkit := 1)",
        "match 1:\n    case git_toolkit: pass",
        "a, (b, *git_toolkit) = 1",
        "git_toolkit += 1",
        "git_toolkit: int = 1",
    ];
    for text in rows {
        let findings = splice_text(text, false).unwrap_err().findings;
        let expected = "`git_toolkit` is a toolkit that is already there: do not assign, define, import or delete it, \
            call `await git_toolkit.…(…)`";
        assert_eq!(findings.last().unwrap().message, expected, "{text}");
    }
}

#[test]
fn what_cannot_run_is_refused_before_it_wastes_a_round() {
    check(&[
        ("x = (1,\ny = 2", "line 2: syntax error: Expected `,`, found `=` in `y = 2`"),
        ("", "line 1: there is nothing to run: write at least one statement"),
        ("# first I think\n# then I act", "line 1: there is nothing to run: write at least one statement"),
        ("    pass\n    ...", "line 1: there is nothing to run: write at least one statement"),
        (
            "I am sorry, but I cannot do that.\nPlease tell me more about it.",
            "line 1: this is prose, not Python: write statements only; to speak to the user, \
             `await system_toolkit.send_message(\"…\")`",
        ),
        (
            "name = input('Name?')",
            "line 1: `input()` has nobody to ask: use `answer = await system_toolkit.ask_user(\"…\")`",
        ),
        ("import os, subprocess", "line 1: `subprocess` does not work here: no process can be started, call a toolkit"),
        (
            "from urllib.request import urlopen",
            "line 1: `urllib.request` does not work here: there is no network, call a toolkit",
        ),
        (
            "if rows:\n    return 1\nprint(2)",
            "line 2: `return` stands outside a function: use `if … else …`, the program ends by itself",
        ),
        ("if rows:\n    break", "line 2: `break` and `continue` need a loop around them"),
        ("yield 1", "line 1: `yield` stands outside a function"),
        (
            "def f():\n    await g()\n",
            "line 2: `await` stands in a function that is not async: write `async def`, and await its calls",
        ),
        (
            "def f():\n    if rows:\n        async for x in ops_toolkit.issues():\n            print(x.title)\n",
            "line 3: `async for` stands in a function that is not async: write `async def`",
        ),
    ]);
}

#[test]
fn a_hole_that_closes_its_try_and_goes_on_is_refused() {
    let text = "    x = 1\nexcept Exception as error:\n    print(error)\nprint('outside')\n";
    check(&[(
        text,
        "line 2: the hole closes the `try` around it and goes on: write the statements only, the `except` is there",
    )]);
}

#[test]
fn many_findings_are_told_in_part() {
    let text = "x = foo_toolkit.bar()\n".to_owned() + &"input()\n".repeat(8);
    assert!(message(&text).ends_with("\n- and 3 more"), "{}", message(&text));
}

#[test]
fn files_are_refused_for_less() {
    assert_eq!(file("import subprocess\nreport = 1\n").unwrap().hole, "import subprocess\nreport = 1\n");
    assert_eq!(file("pass\n").unwrap().hole, "pass\n");
    assert_eq!(file("x = git_toolkit.log()\n").unwrap().hole, "x = await git_toolkit.log()\n");
    let refused = file("x = 1\ny = (\n").unwrap_err().to_string();
    assert_eq!(
        refused,
        "The program was not run\n- line 2: the program ends in the middle of a statement: unexpected EOF while parsing"
    );
    assert!(file("git_toolkit = 1\n").is_err());
    assert!(file("await git_toolkit.log(count=1)\n").is_err());
}

#[test]
fn a_long_list_of_names_is_told_in_part() {
    let operations = (0..300).map(|number| operation(&format!("list_thing_{number}"), &[], json!(true)));
    let names: Vec<String> = (0..60).map(|number| format!("filter_{number}")).collect();
    let rows: Vec<Row<'_>> = names.iter().map(|name| (name.as_str(), text(), Some(Value::Null))).collect();
    let many = operation("many", &[("name", text(), None)].into_iter().chain(rows).collect::<Vec<_>>(), json!(true));
    let declarations = [toolkit("big_toolkit", operations.chain([many]).collect())];
    let config = Config::default();
    let known = Known {
        declarations: &declarations,
        carried: &[],
        shapes: &NO_SHAPES,
        not_kept: &NOTHING_LOST,
        finish_length: false,
        config: &config,
    };
    let told = |text: &str| splice(&scaffold(), text, &known).unwrap_err().to_string();
    assert_eq!(
        told("await big_toolkit.list_things_7()"),
        "The program was not run\n- line 1: `big_toolkit` has no operation `list_things_7`; did you mean `list_thing_7` or \
         `list_thing_0` or `list_thing_1`; it has: list_thing_7, list_thing_0, list_thing_1, list_thing_2, list_thing_3, \
         list_thing_4, list_thing_5, list_thing_6, list_thing_8, list_thing_9, list_thing_17, list_thing_27 and 289 more \
         (`await system_toolkit.describe(\"big_toolkit\")`)"
    );
    assert_eq!(
        told("await big_toolkit.many(filter_61='x')"),
        "The program was not run\n- line 1: `big_toolkit.many`: it has no parameter `filter_61`, did you mean `filter_1`; \
         `name` is missing; it needs name and takes filter_0, filter_1, filter_2, filter_3, filter_4, filter_5, filter_6, \
         filter_7, filter_8, filter_9, filter_10, filter_11, filter_12, filter_13, filter_14, filter_15, filter_16, \
         filter_17, filter_18, filter_19, filter_20, filter_21, filter_22, filter_23 and 36 more"
    );
}

#[test]
fn what_only_a_newer_python_reads_is_put_right_or_refused() {
    if env!("EMBEDDED_PYTHON_VERSION") != "3.11" {
        return;
    }
    let (quoted, said) = hole("x = f\"{rows[0][\"name\"]} {', '.join(rows)} {'\\n'.join(rows)}\"");
    assert_eq!(quoted, "x = f\"{rows[0]['name']} {', '.join(rows)} {chr(10).join(rows)}\"\n");
    assert_eq!(
        said,
        [
            "line 1: wrote `'name'` for `\"name\"` within an f-string",
            "line 1: wrote `chr(10)` for `'\\n'` within an f-string"
        ]
    );
    check(&[(
        "type Name = int",
        "line 1: syntax error: Cannot use `type` alias statement on Python 3.11 (syntax was added in Python 3.12) \
         in `type Name = int`",
    )]);
}

#[test]
fn lines_count_as_the_model_wrote_them() {
    let refusal = splice_text("print(json.dumps(1))\nawait git_toolkit.pull()", false).unwrap_err();
    assert_eq!((refusal.findings[0].line, refusal.hole.lines().next()), (2, Some("print(json.dumps(1))")));
}
