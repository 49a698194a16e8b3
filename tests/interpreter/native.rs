//! What the host does for the Python half is what that does by itself.

use fimble::interpreter::Carried;
use fimble::record::VariableKind;

use super::*;

/// Compares both on random values, plain and other ones; prints what differs.
const COMPARE: &str = r##"
import json, math, random, sys
codec, carriable, preview = (sys.modules[f"_fimble.{name}"] for name in ("codec", "carriable", "preview"))
native = sys.modules["_fimble.native"]
chance = random.Random(20)
texts = ["", "a", "$", "é漢😀", "\x00\x1f\x7f\u2028", 'q"\\/\b\f\n\r\t', "\ud800", "x" * 70]
leaves = [
    lambda: None, lambda: chance.random() < 0.5, lambda: chance.randint(-5, 5), lambda: chance.getrandbits(66) - (1 << 65),
    lambda: chance.choice([(1 << 63) - 1, -(1 << 63), 1 << 63]), lambda: chance.uniform(-1e3, 1e3),
    lambda: chance.choice([0.1, 1e16, -0.0, 5e-324, 1.5e300, math.inf, math.nan]), lambda: chance.choice(texts), lambda: (1, "t"),
]

def value(depth, known):
    if depth > 4 or chance.random() < 0.3:
        return chance.choice(leaves)()
    if known and chance.random() < 0.05:
        return chance.choice(known)
    if chance.random() < 0.5:
        made = [value(depth + 1, known) for _ in range(chance.randint(0, 4))]
    else:
        kind = chance.choice([dict, dict, Record])
        made = kind((chance.choice(["a", "b", "ab", "é", "x" * 70, "$" if chance.random() < 0.1 else "c"]), value(depth + 1, known)) for _ in range(3))
    known.append(made)
    return made

def encoded(one, names, cap):
    try:
        return codec.encode(one, names, cap)
    except carriable.NotCarried as reason:
        return repr(reason)

differ = plain = 0
for seed in range(3_000):
    one, names, cap = value(0, []), carriable.Names(), chance.choice([30, 10_000])
    codec.native = native
    ours = encoded(one, names, cap)
    plain += native.plain(one, Record, cap) is not None
    codec.native = None
    theirs = encoded(one, names, cap)
    if ours != theirs:
        differ += 1
        print("written", repr(one)[:300], ours[:300], theirs[:300])
    told = native.describe(one, Record, cap)
    if told is not None and told != (ours, preview.type_name(one), preview.preview(one)):
        differ += 1
        print("described", repr(one)[:300], told)
    if theirs[:1] not in "\"[{" :
        continue
    for text in (theirs, theirs.encode()):
        read, expected = native.loads(text), json.loads(text)
        if repr(read) != repr(expected) or type(native.loads(text, Record)) not in (Record, type(expected)):
            differ += 1
            print("read", text[:300], repr(read)[:300])
for wrong in ("", "[", "[1,]", '{"a" 1}', "nul", "1 2", b"\xff", '"\\ud800"', "[" * 100_000):
    try:
        print("read", wrong[:20], native.loads(wrong))
    except (ValueError, RecursionError):
        continue
print(differ, plain > 500)
"##;

#[tokio::test]
async fn the_hosts_json_is_the_one_of_python() {
    let interpreter = start().await;
    assert_eq!(output(&interpreter, COMPARE).await, "0 True\n");
}

/// Reads each of `sources` with and without the host's parser; prints what differs, and how many the host could read.
const STATEMENTS: &str = r##"
import sys, warnings
statements, definitions, carriable = (sys.modules[f"_fimble.{name}"] for name in ("statements", "definitions", "carriable"))
native = sys.modules["_fimble.native"]
parts = "co_code co_consts co_names co_varnames co_flags co_stacksize co_exceptiontable co_firstlineno co_name co_filename".split()

def shape(code):
    return [shape(part) if hasattr(part, "co_code") else repr(part) for name in parts for part in [getattr(code, name)] if name != "co_consts"] + [
        shape(part) if hasattr(part, "co_code") else repr(part) for part in code.co_consts] + [list(code.co_positions())]

def read(source, parser):
    statements.native = parser
    shown = []
    warnings.showwarning = lambda message, category, file, line, *rest: shown.append((str(message), category, file, line))
    try:
        made = statements.parse(source, "<read>")
    except Exception as error:
        return type(error).__name__, error.args, sorted(shown, key=repr)
    noted = definitions.Definitions(source, carriable.Names())
    noted._seen = made
    noted.line_of("")
    return [(shape(one.code), one.has_value, one.line) for one in made], noted._stores, noted._mentions, sorted(shown, key=repr)

quick = 0
for source in sources:
    known = native.statements(source)
    quick += known is not None
    own, host = read(source, None), read(source, native)
    if own != host:
        print("differs:", source[:400], str(own)[:2000], str(host)[:2000], sep="\n")
    for text, line, *_ in (known or ()) if type(own[0]) is list else ():
        node = compile(text, "", "exec", 0x2000 | 0x400, dont_inherit=True).body
        if len(node) != 1 or node[0].lineno != line:
            print("another statement:", text.strip()[:400])
print(quick)
"##;

/// What only CPython knows to be wrong or to warn of, and places where the two could count differently.
const ODD: [&str; 22] = [
    "x = 1\nreturn x",
    "x = 1\nfor y in x:\n    yield y",
    "def f(a, a):\n    pass",
    "x = 1\nawait x\nnonlocal y",
    "print(f\"{x[\"a\"]}\")",
    "x = 1 is 1\nassert (x, 'a')\n(1)(2)\nbreak",
    "x = '\\d'\ndef f():\n    return '\\w'\ny = 1 is 1",
    "x = 08",
    "x: int\ny: int = 1\nx.y: int = 2",
    "'doc'\nx = 1\n'not doc'",
    "async with a as b, c as (d, e.f):\n    async for g[0] in h: i = j.k = l\n",
    "match x:\n    case Color.RED | {'a': b, **c}: y.z()\n    case [d, *e] if (f := g.h): del f\n",
    "try:\n    import a.b\nexcept* (c.d, E) as e:\n    from . import f as g, h\nelse:\n    i, *j = k\nfinally:\n    l.m += 1",
    "@a.b(c.d)\n@e\nclass F(g.h, metaclass=i.j):\n    k = l\n",
    "x = [a.b for c in d.e if (f := g)]\ny = lambda: h.i\nz = {j.k: l.m, **n.o}\n",
    "(x.a\n  if y.b\n  else z.c)\nf(a.b,\n  *c.d, e=g.h,\n  **i.j)\n",
    "x = f'{a.b}' \\\n  'c' f'{d.e:{f.g}}'\n",
    "\\\nx = 1\n",
    "\n\n# only a comment\n",
    "x = (1,\n\n     2); \ny = '''a\nb'''\n",
    "if x:\n\ty = 1\nelse:\n        z = 2\n",
    "print('größe', größer)\nx = 'ä'; y = 2",
];

#[tokio::test]
async fn the_hosts_statements_are_those_of_cpython() {
    let interpreter = start().await;
    let mut sources: Vec<String> = conformance::scripts().into_iter().map(|script| script.source).collect();
    let most = sources.len();
    sources.extend(ODD.map(str::to_owned));
    let content = serde_json::to_string(&sources).unwrap();
    let variables = vec![Carried { name: "sources".to_owned(), kind: VariableKind::Value, content }];
    let finished = finish(&interpreter, Run { variables, ..program(STATEMENTS) }, &Arc::default()).await;
    assert!(matches!(finished.ending, Ending::Returned { .. }), "{finished:?}");
    let quick: usize = finished.output.lines().next_back().unwrap().parse().unwrap_or_default();
    assert_eq!(finished.output.lines().count(), 1, "{}", finished.output);
    assert!(quick > most / 2, "{quick} of {most}");
}
