//! The host's own reader and writer of JSON do what the Python ones do.

use super::*;

/// Compares both on random values, plain and other ones; prints what differs.
const COMPARE: &str = r##"
import json, math, random, sys
codec, decoding, wire, carriable = (sys.modules[f"_fimble.{name}"] for name in ("codec", "decoding", "wire", "carriable"))
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
