//! What calls return is followed to the fields that are used.

use super::*;

#[test]
fn an_object_with_rows_that_is_used_as_a_list_gets_their_name() {
    let rows = [
        ("p = await ops_toolkit.ports()\nprint(p[0].port)", "p = await ops_toolkit.ports()\nprint(p.ports[0].port)"),
        (
            "p = ops_toolkit.ports()\nfor x in p:\n    print(x.port)",
            "p = await ops_toolkit.ports()\nfor x in p.ports:\n    print(x.port)",
        ),
        ("for x in ops_toolkit.ports():\n    print(x)", "for x in (await ops_toolkit.ports()).ports:\n    print(x)"),
        (
            "p = await ops_toolkit.ports()\nif not p:\n    print(len(p))",
            "p = await ops_toolkit.ports()\nif not p.ports:\n    print(len(p.ports))",
        ),
        (
            "p = await ops_toolkit.ports()\nx = [a.port for a in p if a.process]",
            "p = await ops_toolkit.ports()\nx = [a.port for a in p.ports if a.process]",
        ),
        (
            "p = await ops_toolkit.ports()\nx = sorted(p, key=lambda a: a.port)[0].port",
            "p = await ops_toolkit.ports()\nx = sorted(p.ports, key=lambda a: a.port)[0].port",
        ),
        // Bound twice, to the same operation.
        (
            "p = await ops_toolkit.ports()\nif not p:\n    p = ops_toolkit.ports()\nprint(p[0].port)",
            "p = await ops_toolkit.ports()\nif not p.ports:\n    p = await ops_toolkit.ports()\nprint(p.ports[0].port)",
        ),
    ];
    for (before, after) in rows {
        let (hole, repairs) = hole(before);
        assert_eq!(hole, format!("{after}\n"), "from {before}");
        assert!(!repairs.is_empty());
    }
    let (_, repairs) = hole(rows[0].0);
    assert_eq!(repairs, ["line 2: wrote `.ports` after `p`, which is a Ports, no list"]);
}

#[test]
fn a_name_that_is_bound_to_something_else_too_is_not_followed() {
    for source in [
        "p = await ops_toolkit.ports()\np = p.ports\nprint(p[0].port)",
        "p = await ops_toolkit.ports()\nfor p in [1]:\n    print(p)\nprint(p[0])",
        "p = await ops_toolkit.ports()\np = await ops_toolkit.disks()\nprint(p[0].anything)",
    ] {
        assert_eq!(hole(source), (format!("{source}\n"), Vec::<String>::new()));
    }
}

#[test]
fn fields_that_a_result_does_not_have_are_refused() {
    let rows = [
        (
            "d = await ops_toolkit.disks()\nprint(d[0].usage)",
            "line 2: Disk has no field `usage`; it has: mount, used_percent",
        ),
        (
            "for d in await ops_toolkit.disks():\n    print(d['use_percent'])",
            "line 2: Disk has no field `use_percent`; did you mean `used_percent`; it has: mount, used_percent",
        ),
        (
            "d = await ops_toolkit.disks()\nprint(d.mount)",
            "line 2: a list has no field `mount`: take it of each element",
        ),
        (
            "x = [d.name for d in await ops_toolkit.disks()]",
            "line 1: Disk has no field `name`; it has: mount, used_percent",
        ),
        (
            "p = await ops_toolkit.ports()\nfor x in p:\n    print(x.number)",
            "line 3: Port has no field `number`; it has: port, process",
        ),
        (
            "x = max(await ops_toolkit.disks(), key=lambda d: d.used_percent)\nprint(x.path)",
            "line 2: Disk has no field `path`; it has: mount, used_percent",
        ),
    ];
    for (text, finding) in rows {
        assert_eq!(message(text), format!("The program was not run\n- {finding}"), "from {text}");
    }
}

#[test]
fn what_is_not_sure_is_let_through() {
    let programs = [
        "d = await ops_toolkit.disks()\nd = {'x': 1}\nprint(d.x)\n",
        "for d in await ops_toolkit.disks():\n    d['free'] = 100 - d.used_percent\n    print(d.free, d.get('x'))\n",
        "p = await ops_toolkit.ports()\nprint(p.ports, p['truncated'], p.keys(), p.ports[0].process.upper())\n",
        "c = await git_toolkit.log()\nprint(c[0].anything)\n",
        "def f(d):\n    return d.anything\nd = await ops_toolkit.disks()\nprint(f(d[0]))\n",
        "import asyncio\nd = ops_toolkit.disks()\nt = asyncio.create_task(d)\nprint(d.done(), await t)\n",
        "rows = [{'n': d.mount} for d in await ops_toolkit.disks()]\nprint([d['n'] for d in rows])\n",
        "p = await ops_toolkit.ports()\nprint([p.x for p in rows])\n",
    ];
    for program in programs {
        assert_eq!(
            splice_text(program, false).map(|program| (program.hole, program.repairs)),
            Ok((program.to_owned(), Vec::new()))
        );
    }
}

#[test]
fn async_for_gets_the_items_of_all_pages() {
    let accepted = [
        "async for issue in ops_toolkit.issues(state='closed'):\n    print(issue.number, issue['title'].upper())\n",
        "x = [issue.title async for issue in ops_toolkit.issues() if issue.number > 3]\n",
        "x = {issue.number: issue async for issue in ops_toolkit.issues()}\n",
        "async def open_ones():\n    return [issue.title async for issue in ops_toolkit.issues()]\nx = await open_ones()\n",
        "issues = ops_toolkit.issues()\nasync for issue in issues:\n    print(issue.title)\n",
        "issues = ops_toolkit.issues()\nx = [issue.title async for issue in issues]\nprint(issues.meta.next)\n",
        "page = await ops_toolkit.issues()\nfor issue in page.rows:\n    print(issue.title, page.meta.next)\n",
        "async for name in git_toolkit.branches():\n    print(name.upper())\n",
    ];
    for program in accepted {
        assert_eq!(hole(program), (program.to_owned(), Vec::<String>::new()));
    }
    let refused = [
        (
            "async for issue in ops_toolkit.issues():\n    print(issue.body)",
            "line 2: Issue has no field `body`; it has: number, title",
        ),
        (
            "x = [issue['id'] async for issue in ops_toolkit.issues()]",
            "line 1: Issue has no field `id`; it has: number, title",
        ),
        (
            "async for issue in ops_toolkit.issues():\n    pass\nprint(issue.titel)",
            "line 3: Issue has no field `titel`; did you mean `title`; it has: number, title",
        ),
        (
            "async for disk in ops_toolkit.disks():\n    print(disk.path)",
            "line 2: Disk has no field `path`; it has: mount, used_percent",
        ),
        (
            "x = [port.number async for port in ops_toolkit.ports()]",
            "line 1: Port has no field `number`; it has: port, process",
        ),
    ];
    for (text, finding) in refused {
        assert_eq!(message(text), format!("The program was not run\n- {finding}"), "from {text}");
    }
}

#[test]
fn async_for_over_the_result_of_a_call_goes_through_the_call_itself() {
    let rows = [
        ("async for x in await ops_toolkit.issues('open'):\n    print(x.title)", "ops_toolkit.issues('open')"),
        (
            "async for x in (await ops_toolkit.issues(state='open')).rows:\n    print(x.title)",
            "ops_toolkit.issues(state='open')",
        ),
        ("async for x in ops_toolkit.issues().rows:\n    print(x.title)", "ops_toolkit.issues()"),
        ("async for x in await ops_toolkit.disks():\n    print(x.mount)", "ops_toolkit.disks()"),
    ];
    for (before, call) in rows {
        let (hole, repairs) = hole(before);
        let body = before.split_once(":\n").unwrap().1;
        assert_eq!(hole, format!("async for x in {call}:\n{body}\n"), "from {before}");
        let name = call.split('(').next().unwrap();
        assert_eq!(repairs, [format!("line 1: let `async for` go through `{name}` itself, which it waits for")]);
    }
    let within =
        "async def f():\n    return [x.title async for x in await ops_toolkit.issues(git_toolkit.branches()[0])]";
    let (hole, _) = hole(within);
    let call = "ops_toolkit.issues((await git_toolkit.branches())[0])";
    assert_eq!(hole, format!("async def f():\n    return [x.title async for x in {call}]\n"));
}

#[test]
fn async_for_over_an_object_that_has_one_page_gets_its_list() {
    let rows = [
        (
            "async for x in ops_toolkit.ports():\n    print(x.port)",
            "for x in (await ops_toolkit.ports()).ports:\n    print(x.port)",
        ),
        ("n = [x.port async  for x in ops_toolkit.ports()]", "n = [x.port for x in (await ops_toolkit.ports()).ports]"),
    ];
    for (before, after) in rows {
        let said = "wrote `for … in (await ops_toolkit.ports(…)).ports`, since `ops_toolkit.ports` has no pages";
        assert_eq!(hole(before), (format!("{after}\n"), vec![format!("line 1: {said}")]));
    }
}
