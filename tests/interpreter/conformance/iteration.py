#: comprehensions
words = ["apple", "Bob", "cat", "apple"]
print([w.lower() for w in words if len(w) > 3], {w[0] for w in ["a"]}, {w: len(w) for w in words}, sorted({w.lower() for w in words}))
print([[i * j for j in range(1, 4)] for i in range(1, 4)], [x for row in [[1, 2], [3]] for x in row], sum(n * n for n in range(10)))
#: an iterator of its own
class Countdown:
    def __init__(self, start):
        self.now = start

    def __iter__(self):
        return self

    def __next__(self):
        if self.now <= 0:
            raise StopIteration
        self.now -= 1
        return self.now + 1

print(list(Countdown(3)), next(iter(Countdown(5))), next(Countdown(0), "empty"), list(iter(iter([1, 2, 0, 3]).__next__, 0)))
#: itertools, endless
import itertools
print(list(itertools.islice(itertools.count(10, 5), 4)), list(itertools.islice(itertools.cycle("ab"), 5)), list(itertools.repeat(7, 3)))
print(list(itertools.takewhile(lambda n: n < 5, itertools.count())), list(itertools.dropwhile(str.isalpha, "ab1c")))
#: itertools, combining
import itertools
print(["".join(p) for p in itertools.permutations("abc", 2)], list(itertools.combinations(range(4), 2)))
print(list(itertools.product([0, 1], "xy")), len(list(itertools.combinations_with_replacement("abcd", 3))))
#: itertools, grouping
import itertools
data = sorted(["bee", "ant", "bat", "cow", "ape"])
print({key: list(group) for key, group in itertools.groupby(data, key=lambda w: w[0])})
print(list(itertools.accumulate([1, 2, 3, 4])), list(itertools.accumulate([3, 1, 2], max)), list(itertools.pairwise("abcd")))
print(list(itertools.chain([1], (2, 3))), list(itertools.chain.from_iterable(["ab", "c"])), list(itertools.compress("abcd", [1, 0, 1, 0])))
print(list(itertools.starmap(pow, [(2, 3), (3, 2)])), list(itertools.zip_longest("ab", "c", fillvalue="-")), list(itertools.filterfalse(bool, [0, 1])))
first, second = itertools.tee(iter("xy"))
print(list(first), list(second))
#: zip, enumerate, map, filter, reversed
names, ages = ["ada", "bob"], [36, 25]
for number, (name, age) in enumerate(zip(names, ages), start=1):
    print(number, name, age)
print(dict(zip(names, ages)), list(map(lambda a, b: a + b, [1, 2], [3, 4])), list(filter(None, [0, 1, "", "a"])), list(reversed(names)))
try:
    list(zip([1], [1, 2], strict=True))
except ValueError as error:
    print(error)
print(any([]), all([]), sum([[1], [2]], []), min("hello"), max([], default="none"), sorted("hello", reverse=True))
#: slices
letters = list("abcdefgh")
print(letters[::2], letters[-3:], letters[5:1:-2], letters[slice(1, 3)], "hello"[::-1])
letters[1:3] = ["X"]
letters[::3] = "123"
del letters[-2:]
print(letters, range(10)[2:8:3], slice(1, None, 2).indices(6))
#: lists
numbers = [5, 3, 8]
numbers.append(1)
numbers.extend((9, 9))
numbers.insert(0, 7)
numbers.remove(9)
print(numbers, numbers.pop(), numbers.index(8), numbers.count(9), numbers + [0], numbers * 2)
numbers.sort(key=lambda n: -n)
copy = numbers[:]
numbers.reverse()
print(numbers, copy, [1, 2] < [1, 3], [] == [], 3 in numbers)
for wrong in (lambda: [].pop(), lambda: [1][5], lambda: [1].remove(2)):
    try:
        wrong()
    except (IndexError, ValueError) as error:
        print(type(error).__name__, error)
#: dictionaries
stock = {"tea": 3, "bun": 0}
stock.update(egg=12, tea=4)
stock.setdefault("jam", []).append("red")
print(stock, stock.get("none", "-"), stock.pop("bun"), list(stock.items())[0], stock | {"tea": 9})
print(dict.fromkeys("ab", 0), {v: k for k, v in {"a": 1}.items()}, sorted(stock, key=str), "tea" in stock, stock.popitem())
try:
    stock["nothing"]
except KeyError as error:
    print("missing", error)
print(list(reversed({"a": 1, "b": 2})), {"a": 1}.keys() & {"a", "b"}, {1: "a", True: "b", 1.0: "c"})
#: sets
a, b = {1, 2, 3}, {3, 4}
print(a | b, a & b, a - b, a ^ b, a <= {1, 2, 3, 4}, a.isdisjoint({9}), frozenset(b) == b)
a.add(9)
a.discard(100)
a -= {1}
print(sorted(a), len(a), {frozenset([1]): "f"}[frozenset([1])])
#: tuples and hashing
point = (1, "a", (2, 3))
print(point + (4,), point[2][1], hash((1, 2)) == hash((1, 2)), (1,) * 3, point.index("a"), (1, 2) < (1, 2, 0), ())
try:
    {[1]: 2}
except TypeError as error:
    print(error)
#: counting
from collections import Counter
count = Counter("mississippi")
print(count.most_common(2), count["z"], count + Counter(m=5), count - Counter(s=9), sum(count.values()), sorted(count.elements())[:3])
count.subtract("ss")
print(count, +Counter(a=-1, b=2), Counter(a=1) <= Counter(a=2), count.total())
#: defaults, order and chains
from collections import ChainMap, OrderedDict, defaultdict
groups = defaultdict(list)
for word in ["ant", "bee", "ape"]:
    groups[word[0]].append(word)
print(dict(groups), groups)
ordered = OrderedDict(a=1, b=2, c=3)
ordered.move_to_end("a")
print(ordered, ordered.popitem(last=False))
chain = ChainMap({"x": 1}, {"x": 2, "y": 3})
chain["z"] = 9
print(dict(chain), chain["x"], chain.parents["x"], chain)
#: queues at both ends
from collections import deque
line = deque([1, 2, 3], maxlen=4)
line.append(4)
line.append(5)
line.appendleft(0)
line.rotate(1)
print(line, line.popleft(), line.pop(), list(line), line.maxlen, deque("ab") + deque("c"))
#: heaps
import heapq
heap = [5, 1, 8, 3]
heapq.heapify(heap)
heapq.heappush(heap, 0)
print([heapq.heappop(heap) for _ in range(len(heap))], heapq.nlargest(2, [4, 9, 1]), heapq.nsmallest(2, "hello"), list(heapq.merge([1, 4], [2, 3])))
tasks = []
for priority, name in ((2, "write"), (1, "read"), (3, "sleep")):
    heapq.heappush(tasks, (priority, name))
print(heapq.heappop(tasks), heapq.heapreplace(tasks, (0, "now")), heapq.heappushpop(tasks, (9, "z")))
#: searching in order
import bisect
scores = [10, 20, 20, 30]
print(bisect.bisect_left(scores, 20), bisect.bisect(scores, 20), bisect.bisect(scores, 99))
bisect.insort(scores, 25)
print(scores, ["FDCBA"[bisect.bisect([60, 70, 80, 90], s)] for s in (55, 70, 95)], bisect.bisect([("a", 1), ("b", 2)], "a", key=lambda p: p[0]))
#: arrays and memory views
from array import array
numbers = array("i", [1, 2, 3])
numbers.append(4)
view = memoryview(numbers)
view[0] = 100
print(numbers, view[1:3].tolist(), view.format, view.itemsize, numbers.tobytes()[:4], array("d", [1.5]).typecode)
view = memoryview(bytearray(b"abcdef"))
view[1:3] = b"XY"
print(view.tobytes(), view.cast("B")[0], len(view))
#: primes and a grid
def primes(limit):
    sieve = bytearray([1]) * (limit + 1)
    sieve[:2] = b"\0\0"
    for n in range(2, int(limit**0.5) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, limit + 1, n)))
    return [n for n, prime in enumerate(sieve) if prime]

print(primes(50))
grid = [[0] * 3 for _ in range(2)]
grid[1][2] = 5
print(grid, list(zip(*grid)), [sum(row) for row in grid], max(max(row) for row in grid))
#: shortest paths
import heapq
graph = {"a": {"b": 1, "c": 4}, "b": {"c": 2, "d": 5}, "c": {"d": 1}, "d": {}}
def shortest(start):
    distance, queue = {start: 0}, [(0, start)]
    while queue:
        so_far, node = heapq.heappop(queue)
        for other, length in graph[node].items():
            if so_far + length < distance.get(other, float("inf")):
                distance[other] = so_far + length
                heapq.heappush(queue, (so_far + length, other))
    return distance
print(shortest("a"))
#: an order of tasks
from graphlib import CycleError, TopologicalSorter
print(list(TopologicalSorter({"d": {"b", "c"}, "b": {"a"}, "c": {"b"}}).static_order()))
try:
    list(TopologicalSorter({"a": {"b"}, "b": {"a"}}).static_order())
except CycleError as error:
    print(error.args[0])
#: a mapping and a sequence of its own
from collections.abc import Mapping, MutableSequence, Sequence, Iterable, Hashable
class Lower(Mapping):
    def __init__(self, **items):
        self.items_ = {k.lower(): v for k, v in items.items()}
    def __getitem__(self, key):
        return self.items_[key.lower()]
    def __iter__(self):
        return iter(self.items_)
    def __len__(self):
        return len(self.items_)
lower = Lower(A=1, B=2)
print(lower["a"], lower.get("C", 0), "b" in lower, dict(lower), list(lower.values()), lower == {"a": 1, "b": 2})
print(isinstance([], Sequence), isinstance({}, Iterable), isinstance([], Hashable), issubclass(list, MutableSequence))
#: user collections
from collections import UserDict, UserList, UserString
class Upper(UserDict):
    def __setitem__(self, key, value):
        super().__setitem__(key.upper(), value)
print(Upper(a=1, b=2), UserList([3, 1])[::-1], UserString("hey").upper() + "!", Upper({"x": 1}) | {"y": 2})
