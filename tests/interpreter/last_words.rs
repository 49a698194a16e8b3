//! What a program says of itself at its end, in place of the runtime.

use fimble::interpreter::{Captured, Carried};
use fimble::record::VariableKind;

use super::*;

/// A program that sends its own final frame and ends well. `change` is Python that changes `done`, with the variables
/// `x` and `y` in it.
fn forged(change: &str) -> Run {
    program(&format!(
        "\
import json, os, struct
def variable(name, **more):
    return dict(dict(name=name, kind='value', content='1', type_name='int', preview='1', line=1, references=[]), **more)
done = dict(ending=dict(kind='returned', value=None), written=[variable('x'), variable('y')], removed=[], not_carried=[])
done.update(statements_done=1, statements=1)
{change}
body = json.dumps(done).encode()
left = memoryview(struct.pack('<IB', len(body), 21) + body)
while left:
    left = left[os.write(3, left):]
os._exit(0)
"
    ))
}

async fn ended(interpreter: &Interpreter, change: &str) -> Finished {
    finish(interpreter, forged(change), &Arc::default()).await
}

fn variable(name: &str) -> Captured {
    Captured {
        name: name.to_owned(),
        kind: VariableKind::Value,
        content: "1".to_owned(),
        type_name: "int".to_owned(),
        preview: "1".to_owned(),
        line: 1,
        references: Vec::new(),
    }
}

#[tokio::test]
async fn what_the_runtime_would_not_say_is_nonsense() {
    let interpreter = start().await;
    let finished = ended(&interpreter, "").await;
    assert_eq!(finished.ending, Ending::Returned { value: None });
    assert_eq!(finished.written, vec![variable("x"), variable("y")]);
    for (change, sent) in [
        ("done['written'][0]['name'] = 'x: int\\nimport os'", "the name `x: int import os`"),
        ("done['written'][0]['name'] = ''", "the name ``"),
        ("done['written'][0]['name'] = '*'", "the name `*`"),
        ("done['written'][0]['name'] = 'n' * 201", &format!("the name `{}…`", "n".repeat(79))),
        ("done['written'][0]['name'] = 'demo'", "a variable in place of `demo`"),
        ("done['written'][0]['name'] = 'y'", "the variable `y` twice"),
        ("done['removed'] = ['a b']", "the name `a b`"),
        ("done['not_carried'] = [['a.b', 'why']]", "the name `a.b`"),
        ("done['written'] = [variable(f'v{n}') for n in range(20_001)]", "20001 written names, more than 20000"),
        ("done['removed'] = [f'v{n}' for n in range(1_001)]", "1001 removed names, more than 1000"),
        (
            "done['not_carried'] = [[f'v{n}', ''] for n in range(1_001)]",
            "1001 names that were not carried, more than 1000",
        ),
        ("done['statements_done'] = 2", "2 statements done, more than 1"),
    ] {
        let finished = ended(&interpreter, change).await;
        let expected = format!("the program's process sent {sent} to the host and was stopped; ");
        assert!(crash(&finished).starts_with(&expected), "{change}: {finished:?}");
        assert_eq!((finished.written, finished.removed, finished.not_carried), Default::default(), "{change}");
    }
    let finished = ended(&interpreter, "done['statements'] = 4_000_000_000").await;
    assert!(crash(&finished).contains("sent 4000000000 statements, more than "), "{finished:?}");
}

#[tokio::test]
async fn texts_for_a_reader_are_bounded_and_stay_on_their_line() {
    let interpreter = start().await;
    let change = "\
done['written'] = [variable('x', type_name='int\\nimport os', preview='1\\r2\\u20283', references=['f', 'a\\nb'])]
done['written'] += [variable('y', type_name='t' * 81, preview='p' * 401)]
done['not_carried'] = [['*', 'a\\nb'], ['z', 'r' * 201]]
done['ending'] = dict(kind='raised', traceback='a' * 20_000 + 'the end', exception='E\\n' * 100, statement=1, line=1)";
    let finished = ended(&interpreter, change).await;
    let cut = |letter: &str, count: usize| format!("{}…", letter.repeat(count - 1));
    let x = Captured {
        type_name: "int import os".to_owned(),
        preview: "1 2 3".to_owned(),
        references: vec!["f".to_owned()],
        ..variable("x")
    };
    let y = Captured { type_name: cut("t", 80), preview: cut("p", 400), ..variable("y") };
    assert_eq!(finished.written, vec![x, y]);
    assert_eq!(finished.not_carried, vec![("*".to_owned(), "a b".to_owned()), ("z".to_owned(), cut("r", 200))]);
    let (half, exception) = ((16 * 1024 - 64) / 2, cut("E ", 41)[..79].to_owned() + "…");
    let traceback = format!(
        "{}\n[… {} bytes were cut here …]\n{}the end",
        "a".repeat(half),
        20_007 - 2 * half,
        "a".repeat(half - 7)
    );
    assert_eq!(finished.ending, Ending::Raised { traceback, exception, statement: 1, line: 1 });

    let finished = ended(&interpreter, "done['ending']['value'] = 'é' * 10_000").await;
    let value = format!("{} [… 3680 bytes were cut here …]", "é".repeat(8_160));
    assert_eq!(finished.ending, Ending::Returned { value: Some(value) });
}

#[tokio::test]
async fn a_program_may_name_its_variables_in_any_script() {
    let interpreter = start().await;
    let source = "größe = 1\n数 = 2\nनमस्ते = 3\nglobals()['class'] = 4\nmatch = 5";
    let finished = run(&interpreter, source).await;
    assert_eq!(finished.ending, Ending::Returned { value: None });
    let names: Vec<&str> = finished.written.iter().map(|one| &*one.name).collect();
    assert_eq!(names, vec!["größe", "数", "नमस्ते", "match"]);
    let reason = "it is a word of Python's own, which no program can read as a name";
    assert_eq!(finished.not_carried, vec![("class".to_owned(), reason.to_owned())]);
}

#[tokio::test]
async fn a_program_may_remove_all_that_it_was_given() {
    let interpreter = start().await;
    let mut run = program("for name in list(globals()):\n    if name[0] == 'v':\n        del globals()[name]");
    let names: Vec<String> = (0..1_500).map(|number| format!("v{number}")).collect();
    run.variables = names
        .iter()
        .map(|name| Carried { name: name.clone(), kind: VariableKind::Value, content: "1".to_owned() })
        .collect();
    let finished = finish(&interpreter, run, &Arc::default()).await;
    assert_eq!(finished.ending, Ending::Returned { value: None });
    assert_eq!(finished.removed, names);
}
