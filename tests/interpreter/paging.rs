//! `async for` over calls whose results come page by page.

use fimble::interpreter::{Carried, Paging};
use fimble::record::VariableKind;

use super::*;

/// Answers `demo.list(kind, cursor=…)`: three pages of two rows, and writes down what was asked.
#[derive(Default)]
struct Pages {
    calls: Mutex<Vec<HostCall>>,
    prints: Mutex<String>,
}

#[async_trait]
impl Host for Pages {
    async fn call(&self, call: HostCall) -> Result<Value, ToolError> {
        self.calls.lock().unwrap().push(call.clone());
        let kind = call.positional[0].as_str().unwrap().to_owned();
        let token = call.keyword.get("cursor").and_then(Value::as_str);
        let number: u32 = token.map_or(1, |token| token.parse().unwrap());
        if kind == "fails" && number == 2 {
            return Err(ToolError::unavailable("the second page is away").with_hint("call again later"));
        }
        let next = match kind.as_str() {
            "endless" => json!(format!("{}", number + 1)),
            "repeats" => json!("2"),
            _ if number < 3 => json!(format!("{}", number + 1)),
            _ => Value::Null,
        };
        Ok(json!({"rows": [format!("{kind}{number}a"), format!("{kind}{number}b")], "meta": {"next": next}}))
    }

    fn print(&self, text: &str) {
        self.prints.lock().unwrap().push_str(text);
    }

    fn statement(&self, _: u32, _: u32) {}
}

fn paged(source: &str) -> Run {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let paging = Paging {
        target: "demo".to_owned(),
        method: "list".to_owned(),
        argument: "cursor".to_owned(),
        position: 2,
        token: names(&["meta", "next"]),
        items: names(&["rows"]),
    };
    Run { paging: vec![paging], ..program(source) }
}

/// How it ended, and what was asked: the kind, the token, and the line and ordinal of the call.
async fn play(run: Run) -> (Finished, Vec<(String, Option<String>, u32, u32)>) {
    let interpreter = start().await;
    let host = Arc::<Pages>::default();
    let finished = interpreter.run(run, Arc::clone(&host) as Arc<dyn Host>, CancellationToken::new()).await.unwrap();
    let asked = |call: &HostCall| {
        let token = call.keyword.get("cursor").and_then(Value::as_str).map(str::to_owned);
        (call.positional[0].as_str().unwrap().to_owned(), token, call.site.line, call.ordinal)
    };
    let calls = host.calls.lock().unwrap().iter().map(asked).collect();
    (finished, calls)
}

fn asked(kind: &str, token: Option<&str>, line: u32, ordinal: u32) -> (String, Option<String>, u32, u32) {
    (kind.to_owned(), token.map(str::to_owned), line, ordinal)
}

#[tokio::test]
async fn each_page_is_a_call_of_its_own_with_the_loops_place() {
    let source = "\
import asyncio
found = []
async for row in demo.list('x'):
    found.append(row)
print(found)
print([row async for row in demo.list('y', cursor='3')])
async def count(kind):
    return len([row async for row in demo.list(kind)])
print(await asyncio.gather(asyncio.create_task(count('z')), count('w')))
";
    let (finished, mut calls) = play(paged(source)).await;
    let expected = "['x1a', 'x1b', 'x2a', 'x2b', 'x3a', 'x3b']\n['y3a', 'y3b']\n[6, 6]\n";
    assert_eq!(finished.output, expected, "{finished:?}");
    assert_eq!(finished.usage.calls, 10);
    let together = calls.split_off(4);
    assert_eq!(
        calls,
        [asked("x", None, 3, 0), asked("x", Some("2"), 3, 0), asked("x", Some("3"), 3, 1), asked("y", Some("3"), 6, 0)]
    );
    // The pages after the first are told apart by their ordinals, whichever task comes first.
    let later = together.iter().filter(|(_, token, ..)| token.is_some());
    let mut places: Vec<(u32, u32)> = later.map(|(.., line, ordinal)| (*line, *ordinal)).collect();
    places.sort_unstable();
    assert_eq!(places, [(8, 0), (8, 1), (8, 2), (8, 3)]);
}

#[tokio::test]
async fn a_loop_that_stops_early_asks_for_no_more() {
    let source = "async for row in demo.list('x'):\n    break\nprint(row)\nasync for row in demo.list('x'):\n    \
                  if row == 'x2a':\n        break\nprint(row)\n";
    let (finished, calls) = play(paged(source)).await;
    assert_eq!(finished.output, "x1a\nx2a\n", "{finished:?}");
    assert_eq!(calls, [asked("x", None, 1, 0), asked("x", None, 4, 0), asked("x", Some("2"), 4, 0)]);
}

#[tokio::test]
async fn an_error_of_a_later_page_is_raised_at_the_loop_and_what_was_found_stays() {
    let source = "\
found = []
try:
    async for row in demo.list('fails'):
        found.append(row)
except Unavailable as error:
    print(found, error)
async for row in demo.list('fails'):
    found.append(row)
";
    let (finished, calls) = play(paged(source)).await;
    let told = "['fails1a', 'fails1b'] the second page is away (hint: call again later)\n";
    assert_eq!((finished.output.as_str(), calls.len()), (told, 4), "{finished:?}");
    let Ending::Raised { exception, line, traceback, .. } = &finished.ending else { panic!("{finished:?}") };
    assert_eq!((&**exception, *line), ("Unavailable", 7));
    assert!(!traceback.contains("_fimble") && !traceback.contains("pending.py"), "{traceback}");
    let found = finished.written.iter().find(|one| one.name == "found").unwrap();
    assert_eq!(found.content.matches("fails1").count(), 4, "{found:?}");
}

#[tokio::test]
async fn a_page_that_leads_to_itself_is_the_last_and_the_limit_of_calls_ends_the_others() {
    let (finished, calls) = play(paged("print([row async for row in demo.list('repeats')])")).await;
    assert_eq!((finished.output.as_str(), calls.len()), ("['repeats1a', 'repeats1b', 'repeats2a', 'repeats2b']\n", 2));
    let mut run = paged("async for row in demo.list('endless'):\n    pass");
    run.limits.calls = 7;
    let (finished, calls) = play(run).await;
    assert_eq!((limit(&finished), calls.len()), ("calls", 7), "{finished:?}");
}

#[tokio::test]
async fn a_definition_of_an_earlier_round_goes_through_the_pages_too() {
    let content = "async def rows(kind):\n    return [row async for row in demo.list(kind)]\n";
    let carried = Carried { name: "rows".to_owned(), kind: VariableKind::Definition, content: content.to_owned() };
    let run = Run { variables: vec![carried], ..paged("print(len(await rows('x')))") };
    let (finished, calls) = play(run).await;
    assert_eq!((finished.output.as_str(), calls.len()), ("6\n", 3), "{finished:?}");
}

#[tokio::test]
async fn without_pages_the_result_itself_is_gone_through() {
    let (finished, calls) = play(program("print([name async for name in demo.list('x')])")).await;
    assert_eq!((finished.output.as_str(), calls.len()), ("['rows', 'meta']\n", 1), "{finished:?}");
}
