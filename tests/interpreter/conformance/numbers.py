#: integers
print(7 // 2, -7 // 2, 7 % -3, divmod(-7, 2), 2**100, pow(3, 200, 13), pow(3, -1, 11), int("ff", 16), int("0b101", 0), 1_000)
print((255).bit_length(), (10).bit_count(), 5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 10, -8 >> 1, abs(-3), (3).real, int(-3.9), round(2.5), round(-1234, -2))
try:
    1 // 0
except ZeroDivisionError as error:
    print(error)
try:
    int("x1")
except ValueError as error:
    print(error)
#: floats
import math
print(0.1 + 0.2, 1e308 * 10, -1 / math.inf, 0.1 + 0.2 == 0.3, math.isclose(0.1 + 0.2, 0.3), (0.5).as_integer_ratio(), (2.5).hex(), float.fromhex("0x1p-2"))
print(round(2.675, 2), round(0.5), round(1.5), 5.0 // 2, -5.5 % 2, float("1e-7"), 123456789.123456789, 1e100, 3.0, float("inf") > 10**400)
#: mathematics
import math
print(math.sqrt(2), math.pi, math.gcd(12, 18, 30), math.lcm(4, 6), math.factorial(20), math.comb(10, 3), math.perm(5, 2), math.isqrt(99))
print(math.floor(-1.5), math.ceil(-1.5), math.trunc(-1.5), math.hypot(3, 4), math.log(8, 2), math.log10(1000), math.exp(1), math.degrees(math.pi))
print(math.prod([1, 2, 3]), math.fsum([0.1] * 10), math.copysign(1, -0.0), math.modf(2.5), math.frexp(8), math.dist((0, 0), (1, 1)), math.nextafter(1, 2))
#: complex numbers
import cmath
z = 3 + 4j
print(z * 2, abs(z), z.conjugate(), z ** 2, cmath.sqrt(-1), cmath.phase(-1), complex("1+2j"), z == complex(3, 4), (1j) ** 2)
#: decimals
from decimal import ROUND_HALF_UP, Decimal, DivisionByZero, getcontext, localcontext
print(Decimal("0.1") + Decimal("0.2"), Decimal(1) / Decimal(7), Decimal("2.675").quantize(Decimal("0.01"), ROUND_HALF_UP), Decimal("1E+3"), Decimal(0.1))
with localcontext() as context:
    context.prec = 5
    print(Decimal(2).sqrt(), Decimal(1) / 3)
getcontext().prec = 10
print(Decimal(1) / 3, Decimal("123.4500").normalize(), Decimal("-0.0").is_zero(), sorted([Decimal("1.5"), Decimal("-2")]), Decimal("10").as_tuple())
try:
    Decimal(1) / 0
except DivisionByZero as error:
    print(type(error).__name__)
#: fractions
from fractions import Fraction
print(Fraction(1, 3) + Fraction(1, 6), Fraction("0.125"), Fraction(3.14159).limit_denominator(100), Fraction(7, 2) // 1, float(Fraction(1, 3)), Fraction(-4, 6))
print(sum(Fraction(1, n) for n in range(1, 11)), Fraction(1, 2) ** 2, Fraction(1, 3) < 0.34, Fraction(5).numerator)
#: statistics
import statistics
data = [2.5, 3, 3, 8, 1, 9.25]
print(statistics.mean(data), statistics.median(data), statistics.mode([1, 1, 2]), round(statistics.stdev(data), 6), statistics.pvariance([1, 2, 3]))
print(statistics.quantiles(range(1, 11), n=4), statistics.median_low([1, 2, 3, 4]), statistics.multimode("aabb"), statistics.harmonic_mean([40, 60]), statistics.geometric_mean([1, 4]))
print(statistics.linear_regression([1, 2, 3], [2, 4, 6]), round(statistics.correlation([1, 2, 3], [1, 5, 7]), 4), statistics.NormalDist(100, 15).cdf(100))
#: random numbers from a seed
import random
source = random.Random(42)
print([source.randint(1, 6) for _ in range(8)], round(source.random(), 6), source.choice("abc"), source.sample(range(100), 3))
items = list(range(5))
source.shuffle(items)
print(items, source.choices("ab", weights=[9, 1], k=5), round(source.gauss(0, 1), 4), source.getrandbits(16))
random.seed(7)
print(random.random(), random.uniform(1, 2), random.randrange(0, 100, 5))
#: conversions
print(int(True), float("3"), str(1.0), bool("False"), list("ab"), tuple([1]), set([1, 1]), dict([("a", 1)]), bin(10), hex(255), oct(8), int("-42"), complex(1))
print(int.from_bytes(bytes(range(4)), "little"), float(10**20), bool([]), str(b"x", "ascii"), list({"k": 1}), int(1e18), repr(1e-5), chr(65), "%.3s" % "abcdef")
#: very large numbers
a = 3**500
print(a % 10**9, len(str(a)), a.bit_length(), hash(2**61 - 1), (a * a) // a == a, -(2**200) >> 190)
def fib(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a
print(fib(300), sum(map(int, str(2**1000))))
import sys
try:
    int("1" * 5000)
except ValueError as error:
    print(str(error).split(";")[0])
#: matrices
def multiply(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]
def determinant(m):
    if len(m) == 1:
        return m[0][0]
    return sum((-1) ** j * m[0][j] * determinant([row[:j] + row[j + 1:] for row in m[1:]]) for j in range(len(m)))
print(multiply([[1, 2], [3, 4]], [[0, 1], [1, 0]]), determinant([[2, 0, 1], [1, 3, 2], [1, 1, 4]]))
#: Newton and bisection
def newton(f, df, x, steps=20):
    for _ in range(steps):
        x -= f(x) / df(x)
    return x
print(round(newton(lambda x: x * x - 2, lambda x: 2 * x, 1.0), 12))
low, high = 0.0, 2.0
while high - low > 1e-9:
    middle = (low + high) / 2
    low, high = (middle, high) if middle**3 < 2 else (low, middle)
print(f"{low:.6f}")
#: collatz and perfect numbers
def collatz(n):
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps
print(max(range(1, 1000), key=collatz), collatz(27), [n for n in range(2, 500) if sum(d for d in range(1, n) if n % d == 0) == n])
#: number theory
def egcd(a, b):
    return (a, 1, 0) if b == 0 else (lambda g, x, y: (g, y, x - a // b * y))(*egcd(b, a % b))
def factors(n):
    found, d = [], 2
    while d * d <= n:
        while n % d == 0:
            found.append(d)
            n //= d
        d += 1
    return found + ([n] if n > 1 else [])
print(egcd(240, 46), factors(600851475143), factors(97), pow(2, 560, 561))
#: packed structures
import struct
packed = struct.pack("<IhB4s?d", 1, -2, 3, b"ab", True, 1.5)
print(packed, struct.unpack("<IhB4s?d", packed), struct.calcsize(">qI"), struct.pack(">H", 258), list(struct.iter_unpack("<H", b"\1\0\2\0")))
try:
    struct.pack("B", 256)
except struct.error as error:
    print(error)
buffer = bytearray(8)
struct.pack_into("<I", buffer, 2, 0xDEADBEEF)
print(buffer.hex(), struct.unpack_from("<H", buffer, 2))
