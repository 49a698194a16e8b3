squares = {number: number ** 2 for number in range(5) if number % 2}
print(squares, {value for value in squares.values()})
# ---
by_author = {}
for commit in await git_toolkit.log(limit=5):
    by_author.setdefault(commit.author, []).append(commit.subject)
print({author: len(subjects) for author, subjects in by_author.items()})
# ---
from collections import Counter
words = Counter(word.lower() for commit in await git_toolkit.log() for word in commit.subject.split())
print(words.most_common(2), words["absent"])
# ---
from collections import defaultdict
tree = defaultdict(lambda: defaultdict(int))
for entry in await files_toolkit.list():
    tree[entry.name[:1]][len(entry.name)] += 1
print({key: dict(value) for key, value in tree.items()})
# ---
import itertools
pairs = list(itertools.product("ab", repeat=2))
print(["".join(pair) for pair in pairs], list(itertools.accumulate([1, 2, 3])))
# ---
import json
text = json.dumps({"branches": await git_toolkit.branches()}, sort_keys=True)
print(json.loads(text)["branches"][0])
# ---
import re
matches = [match.groupdict() for match in re.finditer(r"(?P<key>\w+)=(?P<value>\d+)", "a=1, b=22")]
print(matches, re.sub(r"\d+", lambda found: str(int(found[0]) + 1), "v1"))
# ---
from datetime import date, datetime, timedelta
week_ago = datetime(2026, 1, 8) - timedelta(days=7)
print(week_ago.strftime("%Y-%m-%d"), (date(2026, 3, 1) - date(2026, 2, 1)).days)
# ---
import datetime
first = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
print(first.isoformat(), datetime.datetime.fromisoformat("2026-01-03") > datetime.datetime(2026, 1, 2))
# ---
width, name, value = 12, "memory", 3.14159
print(f"{name:>{width}}: {value:.{2}f} {value!r} {name=} {{braces}} {'yes' if value > 3 else 'no'}")
# ---
rows = [("a", 3), ("b", 1)]
table = "\n".join(f"{name:<8}|{size:>4}" for name, size in sorted(rows, key=lambda row: row[1]))
print(table)
# ---
matrix = [[1, 2, 3], [4, 5, 6]]
print(list(map(list, zip(*matrix))), [cell for row in matrix for cell in row if cell > 2])
# ---
nested = {"a": {"b": [1, {"c": 2}]}}
print(nested["a"]["b"][1]["c"], nested.get("x", {}).get("y"))
# ---
merged = {**{"a": 1}, "b": 2} | {"c": 3}
merged.update(d=4)
head, *_ = merged.items()
print(head, merged.pop("a"), "a" in merged)
# ---
unique = set("abca") - {"c"} | {"z"}
print(sorted(unique), frozenset(unique) >= {"a"}, {1} ^ {2})
# ---
text = "one two  three"
print(text.split(), text.title(), text[::-1], text.partition(" ")[2].strip(), "-".join(text.split()))
# ---
data = bytes([1, 2, 3]) + b"\xff"
print(data.hex(), list(data), int.from_bytes(data[:2], "big"), memoryview(data)[1])
# ---
from decimal import Decimal, ROUND_HALF_UP
from fractions import Fraction
price = Decimal("2.345").quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
print(price, Fraction(1, 3) + Fraction(1, 6))
# ---
import statistics
usage = [disk.used_percent for disk in await ops_toolkit.disks()]
print(round(statistics.mean(usage), 1), statistics.median(usage), max(usage), min(usage), sum(usage))
# ---
import heapq
largest = heapq.nlargest(2, await ops_toolkit.disks(), key=lambda disk: disk.used_percent)
print([disk.mount for disk in largest])
# ---
import csv, io
buffer = io.StringIO()
writer = csv.DictWriter(buffer, fieldnames=["mount", "used_percent"])
writer.writeheader()
writer.writerows(await ops_toolkit.disks())
print(buffer.getvalue().splitlines()[0])
# ---
from pathlib import Path
path = Path("/var") / "log" / "nginx.log"
print(path.suffix, path.parent.name, path.with_name("other.log"))
# ---
import textwrap
await system_toolkit.send_message(textwrap.dedent("""
    Disks:
      all fine
""").strip())
# ---
import bisect
grades = "FDCBA"
print([grades[bisect.bisect([60, 70, 80, 90], score)] for score in (33, 85, 99)])
# ---
import string, random
random.seed(1)
print(len("".join(random.choices(string.ascii_letters, k=8))))
# ---
import hashlib, base64
print(hashlib.sha256(b"x").hexdigest()[:8], base64.b64encode(b"x").decode())
# ---
import operator
disks = sorted(await ops_toolkit.disks(), key=operator.attrgetter("used_percent"), reverse=True)
print([*map(operator.itemgetter("mount"), disks)])
# ---
import copy
original = {"a": [1]}
deep, shallow = copy.deepcopy(original), original.copy()
original["a"].append(2)
print(deep, shallow)
# ---
from collections import deque, OrderedDict, ChainMap
recent = deque(maxlen=2)
recent.extend([1, 2, 3])
print(list(recent), ChainMap({"a": 1}, {"b": 2})["b"], OrderedDict(a=1).popitem())
# ---
from itertools import groupby, islice
commits = sorted(await git_toolkit.log(), key=lambda commit: commit.author)
for author, group in groupby(commits, key=lambda commit: commit.author):
    print(author, [commit.sha for commit in islice(group, 2)])
# ---
lines = (await files_toolkit.read("README.md")).splitlines()
numbered = dict(enumerate(lines, 1))
print(len(numbered), next(iter(numbered.values()), ""))
# ---
print(*sorted({"b": 1, "a": 2}.items(), key=lambda pair: (-pair[1], pair[0])), sep="\n", end="\n\n")
# ---
value = 1_000_000
print(f"{value:,} {value:e} {value:x} {0.256:.1%} {-5:+d} {5:05d} {'x':^5}")
# ---
print("%s has %d lines (%.1f %%)" % ("file", 3, 12.5), "{0} {name}".format("a", name="b"))
# ---
table = {}
for row in ["a:1", "b:2"]:
    key, value = row.split(":")
    table[key] = int(value)
print(max(table, key=table.get), all(table.values()), any(value > 1 for value in table.values()))
# ---
letters = [chr(code) for code in range(ord("a"), ord("e"))]
print(letters[1:3], letters[-2:], letters[::2], "".join(reversed(letters)))
# ---
text = 'it\'s "quoted"' + r"\d" + "\u00e9" + "\N{BULLET}" + '''triple
lines'''
print(len(text), text.count("\n"))
# ---
numbers = range(10, 0, -3)
print(list(numbers), len(numbers), 7 in numbers, numbers[1], divmod(17, 5), pow(2, 10, 1000), abs(-3), round(2.567, 2))
# ---
records = [{"name": "a", "tags": ["x", "y"]}, {"name": "b", "tags": []}]
print({tag: record["name"] for record in records for tag in record["tags"]})
# ---
def flatten(items):
    for item in items:
        if isinstance(item, (list, tuple)):
            yield from flatten(item)
        else:
            yield item

print(list(flatten([1, [2, (3, [4])]])))
# ---
total = sum(port.port for port in (await ops_toolkit.ports()).ports if port.process is not None)
print(total, type(total).__name__, isinstance(total, int))
# ---
print([number if number % 2 else -number for number in range(4)], [not flag for flag in (True, False)], not None)
# ---
import math
print(math.inf > 1e308, math.isclose(0.1 + 0.2, 0.3), math.prod([2, 3]), math.hypot(3, 4), complex(1, 2).imag)
