//! What a round defines is there in the next one, however it was written.

use super::*;

#[tokio::test]
async fn a_session_goes_on_after_a_function_on_one_line() {
    let first = format!("def f(x): return x\n{}", send("'defined'"));
    let mut world = World::new([first, format!("y = f(2)\n{}", send("str(y)")), send("str(f(y) + 1)")]).await;
    for message in ["Define f", "Use it", "Use it again"] {
        assert_eq!(world.say(message).await, Verdict::Replied, "{message}");
    }
    assert_eq!(world.contents(SegmentKind::Reply), ["defined", "2", "3"]);
    assert_eq!(world.model.requests().len(), 3, "nothing was refused");
    assert!(world.last_prompt().contains("def f(x): ...  # round 1\n"), "{}", world.last_prompt());
}

#[tokio::test]
async fn a_session_goes_on_after_every_kind_of_definition() {
    let first = "import os\nimport os.path\nimport functools\nfrom collections import namedtuple\n\
        from dataclasses import dataclass\n\
        g = lambda x: x + 1\nh = g\nRows = list[int]\nPair = namedtuple('Pair',\n    'a b')\n\
        def long(  # sums\n    a,\n    b=2,\n):\n    return a + b\n\
        @functools.cache\ndef kept(x): return [x]\n\
        @dataclass\nclass Point: x: int = 0\n\
        async def later(x): return x\n";
    let second = "print(os.path.join('a', 'b'), g(1), h(1), Rows, Pair(1, 2).b, long(1), kept(3), Point(4).x)\n\
        print(await later(5))\n";
    let mut world = World::new([format!("{first}{}", send("'defined'")), format!("{second}{}", send("'used'"))]).await;
    assert_eq!(world.say("Define all").await, Verdict::Replied);
    assert_eq!(world.say("Use all").await, Verdict::Replied);
    assert_eq!(world.model.requests().len(), 2, "nothing was refused: {}", world.last_prompt());
    let rounds = world.session.rounds(0).await.unwrap();
    assert_eq!(rounds[1].output, "a/b 2 2 list[int] 2 3 [3] 4\n5\n");
    let declared = [
        "import os\nimport os.path\n",
        "g = ...  # g = lambda x: x + 1, round 1\n",
        "def long(a, b=2,): ...  # round 1\n",
        "def kept(x): ...  # round 1\n",
        "class Point: ...  # round 1\n",
        "async def later(x): ...  # round 1\n",
    ];
    for lines in declared {
        assert!(rounds[1].prefix.contains(lines), "{lines}: {}", rounds[1].prefix);
    }
    let line = |line: &&str| !line.starts_with('#') && !line.is_empty();
    assert_eq!(rounds[1].prefix.lines().filter(line).count(), 14, "{}", rounds[1].prefix);
}

#[tokio::test]
async fn a_name_that_could_not_be_kept_is_missed_with_the_reason() {
    let first = format!("total = 3\nma = (n for n in [1, 2])\n{}", send("'made'"));
    let uses = "a = 1\nprint(next(ma))\n".to_owned();
    let keeps = format!("ma = 7\n{}", send("'kept'"));
    let mut world = World::new([
        first,
        send("'between'"),
        uses,
        keeps,
        format!("del ma\n{}", send("'gone'")),
        "ma\n".to_owned(),
        send("'x'"),
    ])
    .await;
    assert_eq!(world.say("Make it").await, Verdict::Replied);
    assert_eq!(world.say("Do something else").await, Verdict::Replied);
    // Another process knows it, too.
    world.reopen().await;
    assert_eq!(world.say("Use it").await, Verdict::Replied);
    let told = "(seen before it ran: line 2: `ma` was not kept: ";
    assert!(world.last_prompt().contains(told), "{}", world.last_prompt());
    assert!(!world.last_prompt().contains("did you mean"), "{}", world.last_prompt());
    assert!(world.session.not_kept().is_empty(), "it is written again: {:?}", world.session.not_kept());
    // Whoever deletes a name knows why it is gone.
    assert_eq!(world.say("Delete it").await, Verdict::Replied);
    assert_eq!(world.say("Use it again").await, Verdict::Replied);
    assert!(world.last_prompt().contains("nothing defines `ma`"), "{}", world.last_prompt());
}
