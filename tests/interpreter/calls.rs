//! Calls that programs make, and those they only pretend to make.

use std::time::Instant;

use fimble::record::Site;

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

#[tokio::test]
async fn a_hundred_calls_overlap() {
    let interpreter = start().await;
    let host = Arc::<Recorder>::default();
    let source = "\
import asyncio
results = await asyncio.gather(*(demo.wait() for _ in range(100)))
print(len(results), set(results))
";
    let begun = Instant::now();
    let finished = finish(&interpreter, program(source), &host).await;
    assert_eq!(finished.output, "100 {'waited'}\n");
    assert_eq!(host.most_at_once.load(Ordering::SeqCst), 100);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
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
