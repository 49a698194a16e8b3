#: formatting numbers
n, x = 1234567, 3.14159
print(f"{n:,} {n:_} {n:>12} {n:<12}| {n:^12} {n:+} {n:#x} {n:b} {n:o} {n:e}")
print(f"{x:.2f} {x:8.3f} {x:08.2f} {x:g} {x:%} {0.00001234:g} {1e22} {x!r:>10} {-x:.1f}")
print(f"{n=} {x=:.1f} {'a' if n else 'b'} {{}} {n:{'>'}{15}} {5:03d} {255:#06x} {True:d} {1e400} {float('nan')}")
#: formatting with format and percent
print("{} {1} {0}".replace("{} ", "").format("a", "b"), "{name:*^10}".format(name="x"), "{0[1]} {1.real}".format([1, 2], 3))
print("%s %r %5.2f %-5d| %05d %x %% %c" % ("a", "a", 3.14159, 42, 42, 255, "z"), "%(k)s" % {"k": "v"})
print(format(1234.5, ",.2f"), format("x", ">5"), "{:>{width}}".format("w", width=6), "{!r}".format("q"))
#: formatting of its own
class Money:
    def __init__(self, cents):
        self.cents = cents
    def __format__(self, spec):
        return f"{self.cents / 100:.2f}{' ' + spec if spec else ''}"
    def __str__(self):
        return "money"
print(f"{Money(1234):EUR} {Money(5)} {Money(1)!s} {Money(250):>}")
#: string methods
s = "  Hello, World  "
print(s.strip(), s.lstrip() + "|", s.upper(), s.swapcase(), s.strip().split(", "), s.replace("l", "L", 2).strip())
print("a,b,,c".split(","), "a b  c".split(), "k=v=w".partition("="), "k=v=w".rpartition("="), "x".join("abc"), "1\n2\r\n3".splitlines())
print("abc".find("z"), "abcabc".rfind("b"), "abc".startswith(("x", "a")), "File.TXT".endswith("TXT"), "aaa".count("aa"), "title case it".title())
print("abc".center(9, "-"), "7".zfill(3), "-7".zfill(4), "tab\there".expandtabs(4), "prefix-x".removeprefix("prefix-"), "x.py".removesuffix(".py"))
print("abc".isalpha(), "12".isdigit(), "a1".isalnum(), " ".isspace(), "Ab".istitle(), "ß".casefold(), "ab" * 2, "b" in "abc")
print("hello".translate(str.maketrans("el", "31", "o")), ord("é"), chr(8364), "é".encode(), b"\xc3\xa9".decode(), ascii("é"), repr("it's"))
#: unicode
import unicodedata
word = "naïve café 数据 🎉"
print(len(word), word[::-1], word.upper(), [unicodedata.name(c) for c in "é数"], unicodedata.normalize("NFD", "é") == "é", len("👨‍👩‍👧"))
print(word.encode("utf-16-le")[:4], "é".encode("latin-1"), "日本".encode("utf-8"), unicodedata.category("A"), "\N{SNOWMAN}", "ﬁ".casefold())
try:
    "é".encode("ascii")
except UnicodeEncodeError as error:
    print(error)
print("é€".encode("ascii", "replace"), "é".encode("ascii", "xmlcharrefreplace"), b"a\xff".decode("utf-8", "replace"), "é".encode("ascii", "backslashreplace"))
#: bytes
data = bytes([72, 105]) + b" there"
print(data, data.hex(), bytes.fromhex("48 69"), data[0], data[:2], list(b"abc"), bytearray(b"abc").upper(), b"x" * 3, b"a,b".split(b","))
buffer = bytearray(b"hello")
buffer[0] = ord("J")
buffer.extend(b"!")
print(buffer, int.from_bytes(b"\x01\x00", "big"), (1024).to_bytes(2, "little"), b"%d-%s" % (5, b"x"), data.find(b"th"))
#: regular expressions
import re
text = "Ada (36), Bob (25), Eve (41): total 102"
print(re.findall(r"(\w+) \((\d+)\)", text), re.search(r"total (?P<sum>\d+)", text)["sum"], re.sub(r"\d+", lambda m: str(int(m[0]) * 2), text))
print(re.split(r"[,:]\s*", text), re.match("bob", text, re.I), re.fullmatch(r"\d{3}", "123").span(), re.compile("a+?b").pattern)
for match in re.finditer(r"\b([A-Z])(\w*)", text):
    print(match.start(), match.group(1), match.groups())
print(re.sub(r"(?P<a>\w)(?P<b>\w)", r"\g<b>\1", "abcd"), re.escape("a.b*c"), re.findall(r"(?<=\()\d+(?=\))", text), re.subn("a", "b", "banana"))
#: verbose and multi-line expressions
import re
pattern = re.compile(r"""
    ^(?P<key>\w+)   # the key
    \s*=\s*
    (?P<value>.*?)  # the value
    \s*(?:\#.*)?$   # a comment
""", re.VERBOSE | re.MULTILINE)
print([m.groupdict() for m in pattern.finditer("a = 1 # one\nb=two words\n\nc = ")])
print(re.findall("^.", "ab\ncd", re.M), re.findall("a.b", "a\nb", re.S), bool(re.search("é", "É", re.I)), re.split("(-)", "a-b-c", maxsplit=1))
try:
    re.compile("(")
except re.error as error:
    print(error)
#: a tokenizer
import re
from typing import NamedTuple
class Token(NamedTuple):
    kind: str
    text: str
def tokens(code):
    for m in re.finditer(r"(?P<num>\d+(\.\d+)?)|(?P<op>[-+*/()])|(?P<ws>\s+)|(?P<bad>.)", code):
        if m.lastgroup == "bad":
            raise SyntaxError(f"unexpected {m[0]!r}")
        if m.lastgroup != "ws":
            yield Token(m.lastgroup, m[0])
print(*tokens("3 + 4.5*(2)"), sep="\n")
#: a calculator by recursive descent
def calculate(text):
    symbols = text.replace("(", " ( ").replace(")", " ) ").split()
    def expression():
        value = term()
        while symbols and symbols[0] in "+-":
            value = value + term() if symbols.pop(0) == "+" else value - term()
        return value
    def term():
        value = factor()
        while symbols and symbols[0] in "*/":
            value = value * factor() if symbols.pop(0) == "*" else value / factor()
        return value
    def factor():
        if symbols[0] == "(":
            symbols.pop(0)
            value = expression()
            symbols.pop(0)
            return value
        return float(symbols.pop(0))
    return expression()
print(calculate("2 * ( 3 + 4 ) - 10 / 4"), calculate("1"))
#: text wrapping
import textwrap
text = "The quick brown fox jumped over the lazy dog and went home to sleep for a while."
print(textwrap.fill(text, 30, initial_indent="* ", subsequent_indent="  "))
print(textwrap.shorten(text, 30), textwrap.dedent("""
    a
      b
"""), textwrap.indent("x\ny", "> "), textwrap.wrap(text, 40))
#: templates
from string import Template, ascii_lowercase, capwords, digits, punctuation
print(Template("$who owes $$${amount}").substitute(who="Ada", amount=5), Template("$a $b").safe_substitute(a=1), digits, ascii_lowercase[:3], capwords("a b"))
try:
    Template("$missing").substitute()
except KeyError as error:
    print("missing", error)
#: differences
import difflib
a, b = ["one", "two", "three"], ["one", "2", "three", "four"]
print("\n".join(difflib.unified_diff(a, b, "a", "b", lineterm="")))
print(list(difflib.ndiff(a, b)), difflib.get_close_matches("appel", ["ape", "apple", "peach"]), round(difflib.SequenceMatcher(None, "abcd", "bcde").ratio(), 2))
#: shell words and file names
import fnmatch
import shlex
print(shlex.split("a 'b c' \"d\\\" e\" f#g"), shlex.quote("it's"), shlex.join(["a b", "c"]), fnmatch.filter(["a.py", "b.txt"], "*.py"), fnmatch.translate("*.p?")[:8])
#: caesar, palindromes and anagrams
def caesar(text, shift):
    return "".join(chr((ord(c) - 97 + shift) % 26 + 97) if c.islower() else c for c in text)
print(caesar("hello, world", 3), caesar(caesar("abc xyz", 5), -5))
print([w for w in ("level", "python", "noon") if w == w[::-1]], sorted("listen") == sorted("silent"))
def roman(n):
    out = ""
    for value, sign in ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")):
        out += sign * (n // value)
        n %= value
    return out
print([roman(n) for n in (1994, 2024, 49)])
#: a table of text
rows = [("name", "size", "price"), ("tea", 3, 2.5), ("biscuits", 12, 10.75)]
widths = [max(len(str(row[i])) for row in rows) for i in range(3)]
for row in rows:
    print(" | ".join(f"{cell:>{w}}" if not isinstance(cell, str) else f"{cell:<{w}}" for cell, w in zip(row, widths)))
print("-" * (sum(widths) + 6))
#: printing
import sys
print(1, 2, sep="-", end="!\n")
print(*[1, 2], "x", sep="\n")
print("no newline", end="")
print()
sys.stdout.write("written\n")
print("flushed", flush=True)
print("a\tb", "c\\d", r"\n", """multi
line""", 'q"q', None, True, 1.0, 1e16, 1 / 3, 2**70, [1, "a"], {"k": (1,)}, {1}, set(), b"x", ..., NotImplemented)
sys.stdout.buffer.write(b"bytes\n")
print("after", file=sys.stdout)
#: printing into something else
import contextlib
import io
buffer = io.StringIO()
with contextlib.redirect_stdout(buffer):
    print("caught", 1)
    print("me")
print(repr(buffer.getvalue()), file=None)
print("x", file=buffer)
buffer.seek(0)
print(buffer.readlines(), io.BytesIO(b"ab\ncd").readline(), io.TextIOWrapper(io.BytesIO("é".encode()), "utf-8").read())
#: pretty printing
from pprint import pformat, pprint
pprint({"b": list(range(15)), "a": {"nested": ["x" * 30, "y" * 30, "z" * 30]}}, width=60)
print(pformat({3: "c", 1: "a"}, sort_dicts=False), pformat([1, [2, [3, [4]]]], depth=2))
import reprlib
print(reprlib.repr(list(range(100))), reprlib.repr("x" * 100))
#: html and addresses
from html import escape, unescape
from html.parser import HTMLParser
from urllib.parse import parse_qs, quote, unquote, urlencode, urljoin, urlsplit
class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []
    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.found.append(dict(attrs).get("href"))
links = Links()
links.feed('<p><a href="/x?a=1&amp;b=2">x</a> <a href="y">y</a></p>')
print(links.found, escape("<&\">"), unescape("&lt;&eacute;"), urljoin("http://h/a/b", "../c"))
parts = urlsplit("https://user@host:8080/p/a?q=1&q=2#frag")
print(parts.hostname, parts.port, parts.path, parse_qs(parts.query), parts.fragment, quote("a b/é"), unquote("%C3%A9"), urlencode({"a": "x y", "b": [1, 2]}, doseq=True))
#: words counted
import re
from collections import Counter
text = """It was the best of times, it was the worst of times, it was the age of wisdom."""
words = Counter(re.findall(r"[a-z]+", text.lower()))
for word, count in sorted(words.items(), key=lambda p: (-p[1], p[0]))[:5]:
    print(f"{word:<8}{'#' * count} {count}")
#: markdown of a kind
import re
def convert(text):
    out = []
    for line in text.splitlines():
        if m := re.match(r"(#+) (.*)", line):
            out.append(f"<h{len(m[1])}>{m[2]}</h{len(m[1])}>")
        elif line.startswith("- "):
            out.append(f"<li>{line[2:]}</li>")
        elif line:
            out.append("<p>" + re.sub(r"\*(.+?)\*", r"<b>\1</b>", line) + "</p>")
    return "\n".join(out)
print(convert("# Title\n\nSome *bold* text\n- one\n- two"))
