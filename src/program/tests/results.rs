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
