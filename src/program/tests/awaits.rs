//! A missing `await` is inserted where a call's value is used, and nowhere else.

use super::*;

/// `before` becomes `after`, and both are programs.
fn check(rows: &[(&str, &str)]) {
    for (before, after) in rows {
        let program = splice_text(before, false).unwrap_or_else(|refusal| panic!("{before}\n{refusal}"));
        assert_eq!(program.hole, format!("{after}\n"), "from {before}");
        // What is right now stays.
        let again = splice_text(&program.hole, false).unwrap();
        assert_eq!((again.hole, again.repairs), (program.hole, Vec::new()), "from {after}");
    }
}

#[test]
fn values_are_awaited_at_the_top_level() {
    check(&[
        ("git_toolkit.log(limit=5)", "await git_toolkit.log(limit=5)"),
        ("x = git_toolkit.log()", "x = await git_toolkit.log()"),
        ("x: list = git_toolkit.log()", "x: list = await git_toolkit.log()"),
        ("rows += git_toolkit.log()", "rows += await git_toolkit.log()"),
        ("x = y = git_toolkit.log()", "x = y = await git_toolkit.log()"),
        (
            "a, b = host_toolkit.cpu(), host_toolkit.memory()",
            "a, b = await host_toolkit.cpu(), await host_toolkit.memory()",
        ),
        ("x = git_toolkit.log()[0]", "x = (await git_toolkit.log())[0]"),
        ("x = git_toolkit.log()[0].sha[:8]", "x = (await git_toolkit.log())[0].sha[:8]"),
        ("x = files_toolkit.read('a').splitlines()", "x = (await files_toolkit.read('a')).splitlines()"),
        ("print(git_toolkit.log())", "print(await git_toolkit.log())"),
        ("print(len(git_toolkit.branches()))", "print(len(await git_toolkit.branches()))"),
        ("print(f'{git_toolkit.status()} {1}')", "print(f'{await git_toolkit.status()} {1}')"),
        ("print(f'{git_toolkit.status().branch:>10}')", "print(f'{(await git_toolkit.status()).branch:>10}')"),
        ("for c in git_toolkit.log():\n    print(c)", "for c in await git_toolkit.log():\n    print(c)"),
        ("x = [c.sha for c in git_toolkit.log()]", "x = [c.sha for c in await git_toolkit.log()]"),
        ("x = sum(c.n for c in git_toolkit.log())", "x = sum(c.n for c in await git_toolkit.log())"),
        ("if not git_toolkit.branches():\n    print(1)", "if not await git_toolkit.branches():\n    print(1)"),
        ("while host_toolkit.cpu() > 90:\n    pass", "while await host_toolkit.cpu() > 90:\n    pass"),
        ("x = host_toolkit.cpu() + 1", "x = await host_toolkit.cpu() + 1"),
        ("x = -host_toolkit.cpu() ** 2", "x = -await host_toolkit.cpu() ** 2"),
        ("x = {'a': host_toolkit.cpu()}", "x = {'a': await host_toolkit.cpu()}"),
        ("x = [*git_toolkit.log()]", "x = [*await git_toolkit.log()]"),
        (
            "x = [host_toolkit.service(n)['up'] for n in 'ab']",
            "x = [(await host_toolkit.service(n))['up'] for n in 'ab']",
        ),
        (
            "if (n := len(git_toolkit.log())) > 1:\n    print(n)",
            "if (n := len(await git_toolkit.log())) > 1:\n    print(n)",
        ),
        ("x = git_toolkit.log() if rows else None", "x = await git_toolkit.log() if rows else None"),
        (
            "print(\n    git_toolkit.log(\n        limit=2,\n    )[0],\n)",
            "print(\n    (await git_toolkit.log(\n        limit=2,\n    ))[0],\n)",
        ),
        ("git_toolkit.show(git_toolkit.log()[0].sha)", "await git_toolkit.show((await git_toolkit.log())[0].sha)"),
    ]);
}

#[test]
fn async_functions_are_awaited_like_toolkits() {
    check(&[
        (
            "async def f():\n    return git_toolkit.log()\nx = f()",
            "async def f():\n    return await git_toolkit.log()\nx = await f()",
        ),
        (
            "async def main():\n    print(host_toolkit.cpu())\nmain()",
            "async def main():\n    print(await host_toolkit.cpu())\nawait main()",
        ),
        (
            "import asyncio\nasync def main():\n    pass\nasyncio.run(main())",
            "import asyncio\nasync def main():\n    pass\nawait main()",
        ),
        ("import asyncio\nx = asyncio.run(git_toolkit.log())[0]", "import asyncio\nx = (await git_toolkit.log())[0]"),
        (
            "import asyncio\nloop = asyncio.get_event_loop()\nx = loop.run_until_complete(git_toolkit.log())",
            "import asyncio\nloop = asyncio.get_event_loop()\nx = await git_toolkit.log()",
        ),
        ("x = fetch('a')", "x = await fetch('a')"),
        ("x = fetch('a')\nasync for y in x:\n    print(y)", "x = await fetch('a')\nasync for y in x:\n    print(y)"),
        ("async def rows2():\n    yield 1\nx = rows2()", "async def rows2():\n    yield 1\nx = rows2()"),
    ]);
}

#[test]
fn functions_that_are_not_async_wait_for_the_result() {
    check(&[
        (
            "def f():\n    x = git_toolkit.log()\n    return x",
            "def f():\n    x = git_toolkit.log().result()\n    return x",
        ),
        ("def f():\n    return git_toolkit.log()", "def f():\n    return git_toolkit.log()"),
        ("def f():\n    return git_toolkit.log()[0]", "def f():\n    return git_toolkit.log().result()[0]"),
        ("def f():\n    return await git_toolkit.log()", "def f():\n    return git_toolkit.log().result()"),
        (
            "def f():\n    x = (await git_toolkit.log())[0]\n    return x",
            "def f():\n    x = (git_toolkit.log().result())[0]\n    return x",
        ),
        ("x = lambda: git_toolkit.log()", "x = lambda: git_toolkit.log()"),
        ("x = lambda: git_toolkit.log()[0]", "x = lambda: git_toolkit.log().result()[0]"),
        (
            "x = any(host_toolkit.service(n).up for n in 'ab')",
            "x = any(host_toolkit.service(n).result().up for n in 'ab')",
        ),
        ("x = git_toolkit.log().result()", "x = git_toolkit.log().result()"),
    ]);
}

#[test]
fn calls_that_are_waited_for_later_stay() {
    let unchanged = [
        "import asyncio\nx = await asyncio.gather(host_toolkit.cpu(), host_toolkit.memory())",
        "import asyncio\na = host_toolkit.cpu()\nb = host_toolkit.memory()\nx = await asyncio.gather(a, b)",
        "import asyncio\na = [host_toolkit.service(n) for n in 'ab']\nx = await asyncio.gather(*a)",
        "import asyncio\na = []\nfor n in 'ab':\n    a.append(host_toolkit.service(n))\nx = await asyncio.gather(*a)",
        "import asyncio\na = {}\nfor n in 'ab':\n    a[n] = host_toolkit.service(n)\nx = await asyncio.gather(*a.values())",
        "import asyncio\na = {n: host_toolkit.service(n) for n in 'ab'}\nfor n, t in a.items():\n    print(await t)",
        "import asyncio\nx = await asyncio.gather(*(host_toolkit.service(n) for n in 'ab'))",
        "import asyncio\nx = await asyncio.gather(*[host_toolkit.service(n) for n in 'ab'])",
        "a = host_toolkit.cpu()\nb = host_toolkit.memory()\nprint(await a, await b)",
        "a, b = host_toolkit.cpu(), host_toolkit.memory()\nprint(await a, await b)",
        "from asyncio import gather, create_task\nt = create_task(host_toolkit.cpu())\nx = await gather(t)",
        "async for x in git_toolkit.log():\n    print(x)",
        "x = [host_toolkit.cpu(), host_toolkit.memory()]",
    ];
    check(&unchanged.map(|program| (program, program)));
}

#[test]
fn an_await_before_a_field_moves_to_the_call() {
    let rows = [
        ("x = await git_toolkit.status().branch", "x = (await git_toolkit.status()).branch"),
        ("x = await host_toolkit.disks()[0].mount.upper()", "x = (await host_toolkit.disks())[0].mount.upper()"),
        (
            "def f():\n    return await git_toolkit.status().branch",
            "def f():\n    return git_toolkit.status().result().branch",
        ),
    ];
    check(&rows);
    let (_, repairs) = hole(rows[0].0);
    let expected = [
        "line 1: moved `await` to the call whose result it was meant for",
        "line 1: inserted `await` before `git_toolkit.status`",
    ];
    assert_eq!(repairs, expected);
}

#[test]
fn what_was_inserted_is_told() {
    let (_, repairs) = hole("x = git_toolkit.log()\n\ndef f():\n    return len(git_toolkit.branches())");
    assert_eq!(
        repairs,
        [
            "line 1: inserted `await` before `git_toolkit.log`",
            "line 4: `git_toolkit.branches` is waited for with `.result()`, as its function is not async",
        ]
    );
}
