//! Calls that programs make, and those they only pretend to make.

use std::time::Instant;

use fimble::record::{Readings, Site};

use super::*;

#[tokio::test]
async fn a_call_reaches_the_host_with_its_place_and_comes_back() {
    let interpreter = start().await;
    let host = Arc::<Recorder>::default();
    let finished = finish(&interpreter, program("print(\n    await demo.echo(1, ['a'], b=None))"), &host).await;
    assert_eq!(finished.output, "{'positional': [1, ['a']], 'keyword': {'b': None}}\n");
    assert_eq!(finished.usage.calls, 1);
    let calls = host.calls.lock().unwrap().clone();
    let expected = HostCall {
        id: calls[0].id,
        target: "demo".to_owned(),
        method: "echo".to_owned(),
        positional: vec![json!(1), json!(["a"])],
        keyword: [("b".to_owned(), Value::Null)].into_iter().collect(),
        site: Site { line: 2, column: calls[0].site.column },
        ordinal: 0,
        readings: Readings::default(),
    };
    assert_eq!(calls, vec![expected]);
}

#[tokio::test]
async fn an_error_is_an_exception_with_the_toolkits_own_sentence() {
    let interpreter = start().await;
    let source = "\
try:
    await demo.nothing()
except Exception as error:
    print(type(error).__name__, error)
";
    let printed = output(&interpreter, source).await;
    assert_eq!(printed, "NotFound there is no such thing (hint: ask for another one)\n");
}

/// Answers no call before all are there.
struct Together(tokio::sync::Barrier);

#[async_trait]
impl Host for Together {
    async fn call(&self, _: HostCall) -> Result<Value, ToolError> {
        self.0.wait().await;
        Ok(json!("met"))
    }

    fn print(&self, _: &str) {}

    fn statement(&self, _: u32, _: u32) {}
}

#[tokio::test]
async fn a_hundred_calls_overlap() {
    let interpreter = start().await;
    for source in [
        "import asyncio\nresults = await asyncio.gather(*(demo.meet() for _ in range(100)))\nprint(len(results), set(results))",
        "results = [demo.meet() for _ in range(100)]\nprint(len(results), {await result for result in results})",
    ] {
        let host = Arc::new(Together(tokio::sync::Barrier::new(100)));
        let finished = interpreter.run(program(source), host, CancellationToken::new()).await.unwrap();
        assert_eq!(finished.output, "100 {'met'}\n", "{finished:?}");
    }
}

#[tokio::test]
async fn asyncio_under_another_name_has_a_loop_in_the_first_child_and_in_later_ones() {
    let interpreter = start().await;
    let source = "\
aio = __import__('asyn' + 'cio')
results = await aio.gather(*(demo.meet() for _ in range(20)), aio.to_thread(demo.meet))
print(len(results), await aio.wait_for(aio.create_task(aio.sleep(0, 'later')), 5))
";
    for _ in 0..3 {
        let host = Arc::new(Together(tokio::sync::Barrier::new(21)));
        let finished = interpreter.run(program(source), host, CancellationToken::new()).await.unwrap();
        assert_eq!(finished.output, "21 later\n", "{finished:?}");
    }
}

#[tokio::test]
async fn bytes_in_a_result_are_bytes_and_what_only_looks_like_them_stays_as_it_is() {
    let interpreter = start().await;
    let source = "\
for sent in [
    {'$': 'bytes', 'v': 'AAEC'}, [{'v': '', '$': 'bytes'}], {'$': 'bytes', 'v': 'no Base64'}, {'$': 'bytes', 'v': 'AA='},
    {'$': 'bytes', 'v': 3}, {'$': 'bytes'}, {'$': 'set', 'v': []}, {'$': 'bytes', 'v': 'AA==', 'x': 1}, {'$': {'$': 'bytes', 'v': 'AA=='}, 'v': ''},
]:
    print((await demo.echo(sent)).positional[0])
kept = (await demo.echo({'$': 'bytes', 'v': 'AAEC'})).positional
";
    let finished = finish(&interpreter, program(source), &Arc::default()).await;
    let expected = "\
b'\\x00\\x01\\x02'
[b'']
{'$': 'bytes', 'v': 'no Base64'}
{'$': 'bytes', 'v': 'AA='}
{'$': 'bytes', 'v': 3}
{'$': 'bytes'}
{'$': 'set', 'v': []}
{'$': 'bytes', 'v': 'AA==', 'x': 1}
{'$': b'\\x00', 'v': ''}
";
    assert_eq!(finished.output, expected, "{:?}", finished.ending);
    let kept = finished.written.iter().find(|one| one.name == "kept").unwrap();
    assert!(kept.content.contains(r#"{"$":"bytes","v":"AAEC"}"#), "{kept:?}");
}

#[tokio::test]
async fn calls_above_the_concurrency_limit_wait_for_their_turn() {
    let interpreter = start().await;
    let host = Arc::<Recorder>::default();
    let mut run = program("import asyncio\nprint(len(await asyncio.gather(*(demo.wait() for _ in range(20)))))");
    run.limits.concurrent_calls = 5;
    let finished = finish(&interpreter, run, &host).await;
    assert_eq!(finished.output, "20\n");
    assert_eq!(host.most_at_once.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn a_call_that_is_no_longer_awaited_is_dropped() {
    let interpreter = start().await;
    let host = Arc::<Recorder>::default();
    let source = "\
import asyncio
try:
    await asyncio.wait_for(demo.forever(), 0.05)
except TimeoutError:
    print('late')
print(await demo.wait())
";
    let finished = finish(&interpreter, program(source), &host).await;
    assert_eq!(finished.output, "late\nwaited\n");
    assert_eq!(host.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn every_way_to_stop_waiting_reaches_the_toolkit() {
    let interpreter = start().await;
    for (what, dropped, source) in [
        ("asyncio.timeout", 1, "async with asyncio.timeout(0.05):\n    await demo.forever()"),
        (
            "a cancelled task",
            1,
            "task = asyncio.create_task(demo.forever())\nawait demo.wait()\ntask.cancel()\nawait task",
        ),
        (
            "a group in which one fails",
            2,
            "async with asyncio.TaskGroup() as group:\n    for name in ('forever', 'nothing', 'forever'):\n        \
             group.create_task(getattr(demo, name)())",
        ),
        ("a gathering", 2, "await asyncio.wait_for(asyncio.gather(demo.forever(), demo.forever()), 0.05)"),
        (
            "a helper that is cancelled",
            1,
            "async def helper():\n    return [await demo.forever()]\nawait asyncio.wait_for(helper(), 0.05)",
        ),
    ] {
        let host = Arc::<Recorder>::default();
        let source = format!("import asyncio\n{source}\n");
        let finished = finish(&interpreter, program(&source), &host).await;
        let raised = ["TimeoutError", "CancelledError", "ExceptionGroup"].contains(&&*exception(&finished));
        assert!(raised, "{what}: {finished:?}");
        assert_eq!((host.dropped.load(Ordering::SeqCst), host.now.load(Ordering::SeqCst)), (dropped, 0), "{what}");
    }
}

#[tokio::test]
async fn calls_are_made_in_every_place_where_python_has_an_expression() {
    let interpreter = start().await;
    let source = "\
import asyncio, functools
from concurrent.futures import ThreadPoolExecutor
def one(number):
    return demo.echo(number).result()['positional'][0]
def nested(numbers):
    return [inner for number in numbers for inner in (one(n) for n in [number])]
class Reader:
    @property
    def first(self): return one(1)
    def __getitem__(self, index): return one(index)
    def __iter__(self): yield from map(one, [7, 8])
async def pages(size):
    start = 0
    while True:
        page = (await demo.echo(list(range(start, min(start + size, 5)))))['positional'][0]
        if not page:
            return
        for item in page:
            yield item
        start += size
print(nested([1, 2]), sorted([3, 1, 2], key=lambda n: -one(n)), {one(n): n for n in range(2)}, f'{one(5)}')
print(Reader().first, Reader()[4], list(Reader()), functools.reduce(lambda a, b: a + one(b), [1, 2, 3]))
print([item async for item in pages(2)], [n async for n in pages(3) if n % 2])
print(await asyncio.to_thread(one, 9), list(ThreadPoolExecutor(2).map(one, range(3))))
";
    let expected = "\
[1, 2] [3, 2, 1] {0: 0, 1: 1} 5
1 4 [7, 8] 6
[0, 1, 2, 3, 4] [1, 3]
9 [0, 1, 2]
";
    assert_eq!(output(&interpreter, source).await, expected);
}

#[tokio::test]
async fn a_failed_calls_traceback_has_the_programs_lines_and_values_only() {
    let interpreter = start().await;
    let source = "\
def find(name):
    return demo.nothing(name).result()
async def find_all(names):
    return [find(name) for name in names]
wanted = ['web', 'x' * 1_000]
found = await find_all(wanted)
";
    let finished = run(&interpreter, source).await;
    let Ending::Raised { traceback, exception, statement, line } = &finished.ending else { panic!("{finished:?}") };
    assert_eq!((&**exception, *statement, *line), ("NotFound", 4, 2));
    // Versions of Python differ in the marks below a line, and in whether a comprehension is a frame.
    let lines: Vec<&str> = traceback.lines().filter(|line| !line.trim_matches([' ', '~', '^']).is_empty()).collect();
    assert_eq!(lines.first(), Some(&"Traceback (most recent call last):"));
    assert!(lines.iter().all(|line| !line.contains("File") || line.contains("<program>")), "{traceback}");
    let last = [
        "    return demo.nothing(name).result()",
        "NotFound: there is no such thing (hint: ask for another one)",
        "where name = 'web'",
    ];
    assert!(lines.ends_with(&last), "{traceback}");
}

#[tokio::test]
async fn calls_end_with_their_round() {
    let interpreter = start().await;
    let host = Arc::<Recorder>::default();
    let source = "import asyncio\ntask = asyncio.ensure_future(demo.forever())\nprint(await demo.wait())";
    let finished = finish(&interpreter, program(source), &host).await;
    let warning = "warning: the task Task-1 still ran at the end and was cancelled; await it";
    assert_eq!(finished.output, format!("waited\n{warning}\n"));
    assert_eq!((host.dropped.load(Ordering::SeqCst), host.now.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test]
async fn more_calls_than_allowed_end_the_program() {
    let interpreter = start().await;
    let mut run = program("for n in range(20): await demo.echo(n)");
    run.limits.calls = 5;
    let host = Arc::<Recorder>::default();
    let finished = finish(&interpreter, run, &host).await;
    assert_eq!(limit(&finished), "calls");
    assert_eq!(host.calls.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn a_large_result_arrives_and_a_too_large_one_is_an_error() {
    let interpreter = start().await;
    assert_eq!(output(&interpreter, "print(len(await demo.big()))").await, "1048576\n");
    let mut run = program("try: await demo.big()\nexcept Exception as error: print(error)");
    run.limits.frame_kib = 512;
    let finished = finish(&interpreter, run, &Arc::default()).await;
    assert_eq!(
        finished.output,
        "the result is too large: 1024 KiB, at most 512 KiB can be returned (hint: ask for less at a time, e.g. with a limit \
         or a filter)\n"
    );
}

/// What a program writes to its socket by itself, and what the model is told.
#[tokio::test]
async fn forged_messages_end_the_round() {
    let interpreter = start().await;
    let call = "dict(id=7, target='demo', method='echo', positional=[], keyword={}, line=1, column=0, ordinal=0)";
    let send =
        |kind: u8, body: &str| format!("body = {body}\nos.write(3, struct.pack('<IB', len(body), {kind}) + body)\n");
    let json = |body: &str| format!("json.dumps({body}).encode()");
    let forged = [
        ("an unknown kind", send(99, "b'{}'")),
        ("a host's kind", send(2, &json("dict(id=1, result=1)"))),
        ("no JSON", send(17, "b'nonsense'")),
        ("a wrong shape", send(17, &json("dict(text=1)"))),
        ("too deep", send(17, "b'[' * 100_000")),
        ("too many values", send(17, "b'{\"x\":[' + b'0,' * 1_000_000 + b'0]}'")),
        ("a giant length", "os.write(3, struct.pack('<IB', 0xffffffff, 17))\n".to_owned()),
        (
            "an unknown name",
            send(
                19,
                &json("dict(id=7, target='other', method='m', positional=[], keyword={}, line=1, column=0, ordinal=0)"),
            ),
        ),
        ("an id twice", send(19, &json(call)) + &send(19, &json(call))),
        ("an unknown cancellation", send(20, &json("dict(id=12345)"))),
        ("a statement twice", send(18, &json("dict(number=1, of=3)")) + &send(18, &json("dict(number=1, of=3)"))),
        ("a statement backwards", send(18, &json("dict(number=2, of=3)")) + &send(18, &json("dict(number=1, of=3)"))),
        ("a statement too many", send(18, &json("dict(number=4, of=3)"))),
        ("no statement", send(18, &json("dict(number=0, of=3)"))),
        (
            "more statements than told",
            send(18, &json("dict(number=2, of=3)")) + &send(18, &json("dict(number=3, of=4)")),
        ),
        ("more statements than bytes", send(18, &json("dict(number=1, of=2_000_000)"))),
        ("a half final frame", send(21, &json("dict(ending=dict(kind='returned', value=None))"))),
    ];
    for (what, source) in forged {
        let source = format!("import json, os, struct, time\n{source}time.sleep(10)\n");
        let begun = Instant::now();
        let finished = run(&interpreter, &source).await;
        assert!(crash(&finished).contains("descriptor 3 belongs to the runtime"), "{what}: {finished:?}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{what}: {:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn a_forged_end_counts_only_with_the_end_of_the_process() {
    let interpreter = start().await;
    let done = "dict(ending=dict(kind='returned', value='forged'), written=[], removed=[], not_carried=[], statements_done=9, statements=9)";
    let source = format!(
        "import json, os, struct, time\nbody = json.dumps({done}).encode()\nos.write(3, struct.pack('<IB', len(body), 21) + body)\n\
         while True: time.sleep(10)"
    );
    let begun = Instant::now();
    let finished = run(&interpreter, &source).await;
    crash(&finished);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}
