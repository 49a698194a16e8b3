//! Ordinary programs print in the jail what they print with plain Python: both run the same text, `conformance/*.py`, one
//! program under each `#:` line. Those with the word `await` await at top level, which plain Python gets as the body of a
//! coroutine for `asyncio.run`.

use std::process::Command;

use fimble::interpreter::{Captured, Carried};
use futures_util::StreamExt;

use super::*;

/// The Python that the binary was built with.
const PYTHON: &str = "/usr/bin/python3";

const FILES: &[(&str, &str)] = &[
    ("classes", include_str!("conformance/classes.py")),
    ("concurrency", include_str!("conformance/concurrency.py")),
    ("dates", include_str!("conformance/dates.py")),
    ("errors", include_str!("conformance/errors.py")),
    ("files", include_str!("conformance/files.py")),
    ("functions", include_str!("conformance/functions.py")),
    ("iteration", include_str!("conformance/iteration.py")),
    ("library", include_str!("conformance/library.py")),
    ("numbers", include_str!("conformance/numbers.py")),
    ("text", include_str!("conformance/text.py")),
];

#[derive(Clone)]
pub(super) struct Script {
    title: String,
    awaits: bool,
    pub(super) source: String,
}

pub(super) fn scripts() -> Vec<Script> {
    let mut found = Vec::<Script>::new();
    for (file, text) in FILES {
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("#: ") {
                let awaits = head.ends_with(" | await");
                found.push(Script { title: format!("{file}: {head}"), awaits, source: String::new() });
            } else if let Some(last) = found.last_mut() {
                last.source.push_str(line);
                last.source.push('\n');
            }
        }
    }
    found
}

/// What plain Python prints, in an empty folder.
fn plain(script: &Script) -> String {
    let folder = tempfile::tempdir().unwrap();
    let source = if script.awaits {
        let body: String = script.source.lines().map(|line| format!("    {line}\n")).collect();
        format!("async def _main():\n{body}\nimport asyncio\nasyncio.run(_main())\n")
    } else {
        script.source.clone()
    };
    let file = folder.path().join("program.py");
    let scratch = folder.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    std::fs::write(&file, source).unwrap();
    let mut command = Command::new(PYTHON);
    command.args(["-B", "-X", "utf8"]).arg(&file).current_dir(&scratch).stdin(std::process::Stdio::null());
    let result = command.output().unwrap();
    assert!(result.status.success(), "{}: {}", script.title, String::from_utf8_lossy(&result.stderr));
    String::from_utf8(result.stdout).unwrap()
}

/// How the warning about a definition begins that was changed after it was made.
const NOT_KEPT: &str = "warning: only the source of ";

/// What the next program finds, but for contents that differ from run to run: names and kinds, and reasons.
fn left(finished: &Finished) -> Vec<String> {
    let written = finished.written.iter().map(|one| format!("{} {:?}", one.name, one.kind));
    written.chain(finished.not_carried.iter().map(|one| format!("{one:?}"))).collect()
}

/// A program that finds what another one left, and says of which classes it is.
fn heir(finished: &Finished) -> Run {
    let mut run = program("");
    for Captured { name, kind, content, .. } in finished.written.clone() {
        run.source.push_str(&format!("print({name:?}, type({name}).__module__, type({name}).__qualname__)\n"));
        run.variables.push(Carried { name, kind, content });
    }
    run
}

/// In the first child of a zygote as well, which imports only what its program needs.
#[tokio::test]
async fn ordinary_programs_print_what_plain_python_prints() {
    let scripts = scripts();
    assert!(scripts.len() >= 200, "{} programs", scripts.len());
    let interpreter = start().await;
    let mut different = Vec::new();
    let played = futures_util::stream::iter(scripts.iter().cloned()).map(|script| {
        let interpreter = interpreter.clone();
        async move {
            let other = script.clone();
            let expected = tokio::task::spawn_blocking(move || plain(&other));
            let later = run(&interpreter, &script.source).await;
            let first = run(&start().await, &script.source).await;
            let heir = heir(&later);
            let found = finish(&interpreter, heir.clone(), &Arc::default()).await.output;
            let found_first = finish(&start().await, heir, &Arc::default()).await.output;
            (later, first, found, found_first, expected.await.unwrap(), script)
        }
    });
    let mut played = std::pin::pin!(played.buffered(4));
    while let Some((later, first, found, found_first, expected, Script { title, .. })) = played.next().await {
        for finished in [&later, &first] {
            // What the next program will not find is said after all that this one printed.
            let printed = finished.output.split(NOT_KEPT).next().unwrap_or_default();
            if !matches!(finished.ending, Ending::Returned { .. }) || printed != expected {
                different.push(format!("{title}: {:?}\n{printed}and not\n{expected}", finished.ending));
            }
        }
        if left(&later) != left(&first) {
            different.push(format!("{title}: leaves\n{:#?}\nand first\n{:#?}", left(&later), left(&first)));
        }
        if found != found_first {
            different.push(format!("{title}: finds\n{found}\nand first\n{found_first}"));
        }
    }
    assert!(different.is_empty(), "{} of {}\n{}", different.len(), scripts.len(), different.join("\n"));
}
