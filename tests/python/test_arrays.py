"""Values of numpy and pandas go to text and come back exactly; text that nobody wrote makes no array.

Needs the two packages, and is skipped without them; `tests/numpy.rs` plays rounds with both in the jail.
"""

import base64
import datetime
import json
import random
import textwrap
import unittest
import zoneinfo

import child

fimble = child.load()
try:
    import numpy as np
    import pandas as pd
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed") from None

CAP = 1 << 22
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


def encode(value, cap=CAP):
    return fimble.codec.encode(value, fimble.carriable.Names(), cap)


def decode(text):
    return fimble.decoding.decode(text, {}.__getitem__)


def refusal(value, cap=CAP):
    try:
        encode(value, cap)
    except fimble.carriable.NotCarried as reason:
        return str(reason)
    return None


def dtype_of(pick, depth=0):
    """A dtype of any kind."""
    simple = ["?", "b", "B", "<i2", ">i4", "u8", "e", "f4", ">f8", "g", "F", "D", "S3", "<U2", ">U1", "V5", "M8[ns]", "M8[3D]", "m8", "m8[us]", "m8[Y]"]
    if depth < 2 and pick.random() < 0.2:
        fields = [(f"f{number}", dtype_of(pick, depth + 1), *pick.choice([(), ((2,),), ((1, 2),)])) for number in range(pick.randint(1, 3))]
        return np.dtype(fields, align=pick.random() < 0.3)
    return np.dtype(pick.choice(simple))


def array_of(pick):
    """An array of any dtype, shape and order, made of random bytes."""
    dtype = dtype_of(pick)
    shape = tuple(pick.choice([0, 1, 1, 2, 3]) for _ in range(pick.randint(0, 4)))
    size = int(np.prod(shape, dtype=int))
    if dtype.kind == "U":
        flat = np.array([pick.choice(["", "é", "ab"]) for _ in range(size)], dtype)
    elif "U" in str(dtype.descr) or dtype.char == "?" or dtype.hasobject or dtype.names:
        flat = np.zeros(size, dtype)
    else:
        flat = np.frombuffer(pick.randbytes(size * dtype.itemsize) or b"", dtype).copy() if size else np.zeros(0, dtype)
    value = flat.reshape(shape, order=pick.choice("CF"))
    if pick.random() < 0.2:
        value = value[..., ::-1] if value.ndim else value
    if pick.random() < 0.2:
        value.setflags(write=False)
    return value


def objects_of(pick):
    """An array of objects, some of them arrays and lists."""
    shared = [1, "two"]
    value = np.empty(tuple(pick.randint(0, 3) for _ in range(pick.randint(0, 3))), object)
    flat = value.reshape(-1)
    for number in range(flat.size):
        flat[number] = pick.choice([None, "x", 1 << 80, np.array(5), shared, np.float32(1.5), datetime.date(2024, 1, 2), {"k": np.arange(2)}, b"\xff", float("nan")])
    return value


class Arrays(unittest.TestCase):
    def same(self, back, value):
        self.assertIs(type(back), type(value))
        if type(value) in (list, tuple):
            self.assertEqual(len(back), len(value))
            for one, other in zip(back, value):
                self.same(one, other)
        elif type(value) is dict:
            self.same(list(back.items()), list(value.items()))
        elif isinstance(value, np.ndarray):
            self.assertEqual((back.dtype, back.dtype.isalignedstruct, back.shape, back.flags.writeable), (value.dtype, value.dtype.isalignedstruct, value.shape, value.flags.writeable))
            if value.flags.f_contiguous or value.flags.c_contiguous:
                self.assertEqual((back.flags.f_contiguous, back.flags.c_contiguous), (value.flags.f_contiguous, value.flags.c_contiguous))
            if value.dtype.char in "OT":
                self.same(back.flatten().tolist() if value.dtype.char == "T" else list(back.flatten()), value.flatten().tolist() if value.dtype.char == "T" else list(value.flatten()))
            elif value.dtype.names:
                # A copy of what is not in one piece has anything between its fields.
                self.assertEqual(repr(back.tolist()), repr(value.tolist()))
            else:
                self.assertEqual(back.tobytes(), value.tobytes())
        elif isinstance(value, np.generic):
            content = np.generic.tolist if value.dtype.names else np.generic.tobytes
            self.assertEqual((back.dtype, repr(content(back))), (value.dtype, repr(content(value))))
        else:
            self.assertEqual(repr(back), repr(value))

    def check(self, value):
        text = encode(value)
        json.loads(text)
        back = decode(text)
        self.same(back, value)
        self.assertEqual(encode(back), text)
        fimble.preview.preview(value)
        compile(f"x: {fimble.preview.type_name(value)} = ...", "prompt", "exec")
        return back

    def test_random_arrays_come_back_to_the_byte(self):
        for seed in range(1_500):
            value = array_of(random.Random(seed))
            with self.subTest(seed=seed, dtype=value.dtype, shape=value.shape):
                self.check(value)
                if value.size and not value.dtype.hasobject:
                    self.check(value.reshape(-1)[0])

    def test_arrays_of_objects_keep_what_they_hold(self):
        for seed in range(500):
            with self.subTest(seed=seed):
                self.check(objects_of(random.Random(seed)))

    def test_scalars_dtypes_and_text(self):
        scalars = [
            np.float64("nan"), np.float64(-0.0), np.float32(0.1), np.longdouble("0.1"), np.complex64(1 - 2j), np.int8(-128), np.uint64(2**64 - 1), np.True_,
            np.str_("a\0é"), np.str_(""), np.str_("\ud800"), np.bytes_(b"a\0"), np.bytes_(b""), np.void(b"\0a\0"), np.datetime64("NaT"), np.datetime64("2024-01-02T03", "h"),
            np.datetime64("2024-01-02T03:04:05.123456789"), np.timedelta64(7, "D"), np.timedelta64(3), np.array([(1, 2.5)], "i4,f8")[0],
        ]  # fmt: skip
        for value in [*scalars, np.dtype("f8"), np.dtype([("a", "i1"), ("b", "f8", (2, 3))], align=True), np.dtype((">i4", (2,)))]:
            with self.subTest(value=value):
                self.check(value)
                self.check({"inside": [value, (value,)]})
        self.assertEqual(decode(encode({np.int64(1): 2, (np.str_("k"), 1): 3})), {1: 2, ("k", 1): 3})
        padded = np.dtype({"names": ["a", "b"], "formats": ["u1", "<f4"], "offsets": [3, 8], "itemsize": 20, "titles": ["The a", None]})
        self.assertEqual(self.check(np.zeros(2, padded)).dtype.fields["The a"], padded.fields["a"])
        text = getattr(np.dtypes, "StringDType", None)
        if text is not None:
            for dtype, items in ((text(), ["", "é\0x", "y" * 1000, "z"]), (text(na_object=None), ["a", None]), (text(na_object=np.nan), ["a", np.nan])):
                self.check(np.array(items, dtype).reshape(2, -1))

    def test_sharing_and_cycles_are_kept(self):
        array = np.arange(3)
        back = decode(encode([array, {"again": array}, array.copy()]))
        self.assertIs(back[0], back[1]["again"])
        self.assertIsNot(back[0], back[2])
        ring = np.empty(2, object)
        ring[0] = [ring]
        ring[1] = ring
        back = decode(encode(ring))
        self.assertIs(back[0][0], back)
        self.assertIs(back[1], back)
        back[0] = 5
        self.assertEqual(decode(encode(np.arange(3)))[1:].sum(), 3)
        decode(encode(np.arange(3)))[0] = 7

    def test_the_cap_is_looked_at_before_bytes_are_copied(self):
        huge = np.broadcast_to(np.float64(1), (1 << 20, 1 << 20))
        self.assertIn("larger than", refusal(huge))
        self.assertIn("larger than", refusal([np.broadcast_to(np.array(None, object), (1 << 20, 1 << 20))]))
        self.assertIn("larger than", refusal(np.zeros(3000), 16_000))
        self.assertIsNone(refusal(np.zeros(1000), 16_000))
        self.assertIn("larger than", refusal(pd.DataFrame({"a": np.zeros(3000)}), 16_000))

    def test_what_cannot_be_carried_says_why(self):
        for value, part in (
            (np.ma.array([1, 2], mask=[0, 1]), "keep its `data` and its `mask`"), (np.zeros(2, "O,i4"), "its fields hold objects"), (np.random.default_rng(0), "bit_generator.state"),
            (np.zeros(1, np.dtype("f8", metadata={"unit": "m"})), "metadata"), (np.array([1]).view(type("Mine", (np.ndarray,), {})), "Mine"), (np.array([open], object), None),
            (pd.array(pd.arrays.SparseArray([0, 0, 1])), "to_dense"), (pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}), "its column 'a'"),
        ):  # fmt: skip
            with self.subTest(value=repr(value)):
                reason = refusal(value)
                self.assertEqual(reason is None, part is None)
                self.assertIn(part or "", reason or "")
        state = np.random.default_rng(1).bit_generator.state
        self.assertEqual(decode(encode(state)), state)

    def test_nothing_of_a_program_runs(self):
        touched = []

        class Loud(np.ndarray):
            def __array_finalize__(self, other):
                touched.append("finalize")

            def __getattribute__(self, name):
                touched.append(name)
                return super().__getattribute__(name)

        class Odd:
            def __getattribute__(self, name):
                touched.append(name)
                return super().__getattribute__(name)

            def __eq__(self, other):
                touched.append("eq")
                return True

            def __hash__(self):
                touched.append("hash")
                return 1

            def __repr__(self):
                touched.append("repr")
                return "x"

        known = fimble.carriable.Names()
        known.add(Odd, "Odd")
        cells = np.array([Odd(), Odd()], object)
        values = [np.arange(3).view(Loud), cells, pd.Series(cells, dtype=object), pd.DataFrame({"a": cells}, dtype=object)]
        touched.clear()
        for value in values:
            fimble.preview.preview(value)
            fimble.preview.type_name(value)
            try:
                fimble.codec.encode(value, known, CAP)
            except fimble.carriable.NotCarried:
                continue
        self.assertEqual(touched, [])

    def test_the_prompt_sees_type_shape_and_columns(self):
        show = lambda value: (fimble.preview.type_name(value), fimble.preview.preview(value))
        self.assertEqual(show(np.arange(6.0).reshape(2, 3)), ("ndarray[float64, (2, 3)]", "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]"))
        self.assertEqual(show(np.array(["2024-01-02"], "M8[ns]")), ("ndarray[datetime64[ns], (1,)]", "['2024-01-02T00:00:00.000000000']"))
        self.assertEqual(show(np.zeros(2, [("a", "i4"), ("b", "f8")])), ("ndarray[{a, b}, (2,)]", "[(0, 0.0), (0, 0.0)]"))
        self.assertEqual(fimble.preview.preview(np.zeros(10**6)), "[" + "0.0, " * 15 + "0.0…")
        frame = pd.DataFrame({"n": [1, 2], "x": [0.5, 1.5]})
        self.assertEqual(show(frame), ("DataFrame", "2 rows x 2 columns: n: int64, x: float64"))
        self.assertEqual(show(frame["x"]), ("Series[float64]", "[0.5, 1.5]"))
        self.assertEqual(show(np.float64(2)), ("float64", repr(np.float64(2))))
        self.assertEqual(show({"t": frame}), ("dict[str, DataFrame]", "{'t': 2 rows x 2 columns: n: int64, x: float64}"))


def column(pick, rows):
    """A column of any kind of that many rows."""
    picks = lambda *items: [pick.choice(items) for _ in range(rows)]
    day = pd.Timestamp("2024-03-30 12:00:00.123456")
    text = lambda: picks("a", "é", "", "long " * 9)
    return pick.choice([
        lambda: np.array(picks(1, -5, 1 << 40), "i8"), lambda: np.array(picks(0.5, np.nan, -0.0), "f4"), lambda: np.array(picks(True, False), bool), text,
        lambda: pd.Series([*text()], dtype=object), lambda: pd.Series(picks("a", None), dtype=object), lambda: pd.Series(picks([1], {"k": 2}, pd.NaT, pd.NA, None, day), dtype=object),
        lambda: pd.array(picks("a", None, "b"), dtype="string"), lambda: pd.array(picks(1, None), dtype="Int16"), lambda: pd.array(picks(1.5, None), dtype="Float64"),
        lambda: pd.array(picks(True, None), dtype="boolean"), lambda: pd.Categorical(picks("lo", "hi", None), ["lo", "mid", "hi"], ordered=pick.random() < 0.5),
        lambda: pd.Categorical(picks(3, 1)), lambda: pd.DatetimeIndex(picks(day, pd.NaT)), lambda: pd.DatetimeIndex(picks(day, pd.NaT)).tz_localize(pick.choice([BERLIN, datetime.timezone.utc, "Asia/Tokyo"])),
        lambda: pd.Series(picks("2024-01-02", "1970-01-01"), dtype="datetime64[s]"), lambda: pd.TimedeltaIndex(picks(pd.Timedelta("1D"), pd.NaT)), lambda: pd.PeriodIndex(picks("2024-01", "2025-12"), freq="M"),
        lambda: pd.arrays.IntervalArray.from_breaks(range(rows + 1), closed="left"),
    ])()  # fmt: skip


def index_of(pick, rows):
    """An index of any kind of that many rows."""
    start = pick.randint(-3, 3)
    name = pick.choice([None, "key", ("a", 1), 5])
    letters = [pick.choice("abc") for _ in range(rows)]
    value = pick.choice([
        lambda: pd.RangeIndex(start, start + 3 * rows, 3), lambda: pd.Index(np.arange(rows, dtype="i2")), lambda: pd.Index(letters), lambda: pd.Index(letters, dtype=object),
        lambda: pd.Index([None, 1, "a", (1, 2)][:rows] + [2] * max(rows - 4, 0), dtype=object), lambda: pd.CategoricalIndex(letters, ["c", "b", "a"], ordered=True),
        lambda: pd.date_range("2024-03-30", periods=rows, freq="D", tz=pick.choice([None, BERLIN, "UTC"])), lambda: pd.date_range("2024-01-31", periods=rows, freq="ME"),
        lambda: pd.timedelta_range("1h", periods=rows, freq="h"), lambda: pd.period_range("2024-01", periods=rows, freq="Q"), lambda: pd.interval_range(0, rows),
        lambda: pd.MultiIndex.from_arrays([letters, pd.date_range("2024", periods=rows), range(rows)], names=["l", None, ("x", 2)]), lambda: pd.Index([0.5, np.nan] * rows)[:rows],
    ])()  # fmt: skip
    return value if isinstance(value, pd.MultiIndex) else value.rename(name)


class Frames(unittest.TestCase):
    def same(self, back, value):
        self.assertIs(type(back), type(value))
        exact = {"check_exact": True, "check_freq": True}
        if isinstance(value, pd.DataFrame):
            pd.testing.assert_frame_equal(back, value, check_column_type="equiv", **exact)
            self.same(back.columns, value.columns)
        elif isinstance(value, pd.Series):
            pd.testing.assert_series_equal(back, value, check_index_type="equiv", **exact)
        elif isinstance(value, pd.Index):
            pd.testing.assert_index_equal(back, value, exact=True, check_exact=True, check_names=True)
            self.assertEqual((getattr(back, "freqstr", None), str(getattr(back, "tz", None))), (getattr(value, "freqstr", None), str(getattr(value, "tz", None))))
            return
        self.same(back.index, value.index)
        self.assertEqual((back.attrs, back.flags.allows_duplicate_labels), (value.attrs, value.flags.allows_duplicate_labels))

    def check(self, value):
        text = encode(value)
        back = decode(text)
        self.same(back, value)
        self.assertEqual(encode(back), text)
        fimble.preview.preview(value)
        compile(f"x: {fimble.preview.type_name(value)} = ...", "prompt", "exec")
        return back

    def test_random_tables_columns_and_indexes_come_back(self):
        for seed in range(600):
            pick = random.Random(seed)
            rows = pick.choice([0, 1, 2, 5])
            index = index_of(pick, rows)
            with self.subTest(seed=seed, kind=type(index).__name__, rows=rows):
                self.check(index)
                one = pd.Series(column(pick, rows), name=pick.choice([None, "x", ("a", 1)]))
                one.index = index
                self.check(one)
                columns = [pd.Series(column(pick, rows)) for _ in range(pick.randint(0, 4))]
                frame = pd.DataFrame(dict(enumerate(columns)), index=range(rows))
                frame.index = index
                frame.columns = index_of(pick, len(columns))
                if pick.random() < 0.2:
                    frame.attrs["source"] = ["file", 1]
                self.check(frame)

    def test_the_columns_of_a_table_are_read_once(self):
        table = pd.DataFrame({"n": [1, 2], "x": [0.5, 1.5], "o": pd.Series([[1], "\ud800"], dtype=object)})
        read, array = [], pd.Series.array
        pd.Series.array = property(lambda self: read.append(self.name) or array.__get__(self))
        try:
            text = encode(table)
        finally:
            pd.Series.array = array
        self.assertEqual(read, ["n", "x", "o"])
        self.same(decode(text), table)

    def test_names_that_are_twice_there_and_flags(self):
        self.check(pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]))
        self.check(pd.DataFrame({"a": [1]}).set_flags(allows_duplicate_labels=False))
        self.check(pd.DataFrame(index=["x", "y"]))
        self.check(pd.DataFrame(columns=["x", "y"]))
        table = pd.DataFrame({"a": [1]})
        object.__setattr__(table, "note", "mine")
        self.assertIn("attributes of its own, like `note`", refusal(table))

    def test_moments_and_what_is_missing(self):
        values = [
            pd.Timestamp("2024-01-02 03:04:05.123456789"), pd.Timestamp("2024-10-27 00:30", tz="UTC").tz_convert(BERLIN), pd.Timestamp("2024-10-27 01:30", tz="UTC").tz_convert("Europe/Berlin"), pd.Timestamp("2024-10-27 02:30").replace(fold=1),
            pd.Timestamp("2024-01-02", tz=datetime.timezone(datetime.timedelta(hours=5))), pd.Timedelta("1 days 00:00:00.000000001"), pd.Timedelta(-5, "s"), pd.Period("2024-02", "M"), pd.Interval(0, 1.5, "both"),
        ]  # fmt: skip
        for value in values:
            with self.subTest(value=value):
                back = decode(encode(value))
                self.assertIs(type(back), type(value))
                self.assertEqual((back, repr(back), getattr(back, "fold", 0), getattr(back, "unit", "")), (value, repr(value), getattr(value, "fold", 0), getattr(value, "unit", "")))
        for value in (pd.NaT, pd.NA):
            self.assertIs(decode(encode([value, value]))[1], value)

    def test_work_goes_on_with_what_came_back(self):
        table = decode(encode(pd.DataFrame({"day": pd.to_datetime(["2024-01-01", "2024-01-01", "2024-01-02"]), "shop": ["a", "b", "a"], "sold": [1, 2, 3]})))
        table["twice"] = table["sold"] * 2
        table.loc[0, "sold"] = 10
        self.assertEqual(table.groupby("day")["sold"].sum().tolist(), [12, 3])
        self.assertEqual(decode(encode(table.groupby(["day", "shop"]).sum())).loc[(pd.Timestamp("2024-01-01"), "b"), "twice"], 4)

    def test_a_table_shares_what_it_shares_with_others(self):
        shared = ["x"]
        series = pd.Series([shared, shared], dtype=object)
        back = decode(encode({"series": series, "list": shared, "again": series}))
        self.assertIs(back["series"], back["again"])
        self.assertIs(back["series"][0], back["list"])


class Hostile(unittest.TestCase):
    """Text that `encode` did not write raises, before memory is taken for it."""

    def test_arrays_of_text_that_nobody_wrote(self):
        raw = lambda count: base64.b64encode(bytes(count)).decode()
        trees = [
            {"v": raw(8), "d": "|O", "s": [1]}, {"v": raw(8), "d": "<f8", "s": [2]}, {"v": raw(8), "d": "<f8", "s": [1 << 40]}, {"v": raw(8), "d": "<f8", "s": [-1, -1]}, {"v": raw(0), "d": "<f8", "s": [1 << 62, 1 << 62]},
            {"v": raw(8), "d": "<f8", "s": "1"}, {"v": raw(8), "d": "<f8", "s": [True]}, {"v": raw(8), "d": "<f8", "s": [1] * 65}, {"v": raw(8), "d": "f8,O", "s": [1]}, {"v": raw(8), "d": "numpy.float64", "s": [1]},
            {"v": raw(16), "d": "|T16", "s": [1]}, {"v": raw(8), "d": ["|O", [1]], "s": [1]}, {"v": raw(8), "d": {"names": ["a"], "formats": ["|O"], "offsets": [0], "itemsize": 8}, "s": [1]},
            {"v": raw(8), "d": {"names": ["a"], "formats": ["<f8"], "offsets": [1 << 20], "itemsize": 8}, "s": [1]}, {"v": [1], "d": "<f8", "s": [1]}, {"v": [1], "d": "|O", "s": [1 << 40]}, {"v": [1, 2], "d": "|O", "s": [1]},
            {"v": "not base64!", "d": "<f8", "s": [1]}, {"v": raw(8), "d": {"text": True}, "s": [1]}, {"v": raw(8), "s": [1]}, {"v": None, "d": "<f8", "s": [1]},
        ]  # fmt: skip
        deep = "<f8"
        for _ in range(100):
            deep = [deep, [1]]
        trees.append({"v": raw(8), "d": deep, "s": [1]})
        for tree in trees:
            with self.subTest(tree=str(tree)[:100]), self.assertRaises(Exception) as raised:
                decode(json.dumps({"$": "ndarray", **tree}))
            self.assertNotIsInstance(raised.exception, (MemoryError, RecursionError))

    def test_scalars_and_pandas_that_nobody_wrote(self):
        trees = [
            ("numpy", ["|O", base64.b64encode(bytes(8)).decode()]), ("numpy", ["<f8", ""]), ("numpy", ["load", "x"]), ("numpy", ["void", 1 << 40]), ("numpy", ["str_", {"$": "bytes", "v": ""}]), ("dtype", "os.system"), ("dtype", "|T16"),
            ("pandas", ["eval", "1"]), ("pandas", ["read_pickle", "/x"]), ("pandas", ["Timestamp", 1, "Y", None, 0]), ("pandas", ["Timestamp", "now"]), ("pandas", ["DataFrame", [[1], [1, 2]], [0], ["a", "b"], {}, True]),
            ("pandas", ["StringArray", "python", "NA", [1]]), ("pandas", ["Index"]), ("pandas", []), ("pandas", "DataFrame"),
        ]  # fmt: skip
        for tag, tree in trees:
            with self.subTest(tree=tree), self.assertRaises(Exception):
                decode(json.dumps({"$": tag, "v": tree}))

    def test_changed_text_never_ends_the_process(self):
        good = [encode(value) for value in (np.arange(4.0).reshape(2, 2), np.zeros(2, "i4,f8"), pd.DataFrame({"a": [1], "b": ["x"]}), pd.MultiIndex.from_product([[1, 2], ["a", "b"]]), pd.date_range("2024", periods=2, tz="UTC"))]
        for seed in range(3_000):
            pick = random.Random(seed)
            text = list(pick.choice(good))
            for _ in range(pick.randint(1, 3)):
                text[pick.randrange(len(text))] = pick.choice('0123456789"[]{},:$vdsA=-|<O')
            try:
                decode("".join(text))
            except Exception:
                continue


class Rounds(unittest.TestCase):
    def test_a_package_that_is_gone_names_the_variable_and_the_reason(self):
        text = encode(pd.DataFrame({"a": [1]}))
        variables = [("table", "value", text)]
        source = "import sys\nprint(len(table.columns))"
        self.assertEqual(child.play(source, variables).output, "1\n")
        taken = "try:\n    table + 1\nexcept NameError as error:\n    print(error)"
        package = fimble.decoding._module
        fimble.decoding._module = lambda name: package("no_such_pandas" if name == "pandas" else name)
        try:
            played = child.play(taken, variables)
        finally:
            fimble.decoding._module = package
        self.assertEqual(played.ending["kind"], "returned")
        self.assertIn("`table` could not be brought over from an earlier round: it needs the package `no_such_pandas`, which is not among `interpreter.packages`", played.output)
        self.assertEqual((played.written, played.done["removed"]), ({}, []))

    def test_they_are_passed_to_toolkits_as_lists_and_rows(self):
        source = "import numpy as np, pandas as pd\nkit.take(np.arange(4).reshape(2, 2), np.float64(0.5), pd.DataFrame({'n': [1, 2], 'd': pd.to_datetime('2024-01-02')}), pd.Series([1.5]))"
        played = child.play(source, answer=lambda call: None)
        day = "2024-01-02T00:00:00"
        self.assertEqual(played.calls[0]["positional"], [[[0, 1], [2, 3]], 0.5, [{"n": 1, "d": day}, {"n": 2, "d": day}], [1.5]])

    def test_what_is_missing_is_refused_as_an_argument_like_a_nan_of_python(self):
        source = """
            import numpy as np, pandas as pd
            told = []
            for value in (float("nan"), np.float64("nan"), np.array([[1.0, np.nan]]), pd.Series([np.nan]), pd.DataFrame({"x": [1, None]}), pd.NaT, pd.Series([pd.NaT, pd.NaT]),
                          pd.DataFrame({"d": [pd.NaT]}), pd.NA, pd.array([1, None], dtype="Int16"), np.array([np.inf])):
                try:
                    kit.take(value)
                except TypeError as error:
                    told.append(str(error).removeprefix("kit.take: argument 1: "))
            """
        played = child.play(textwrap.dedent(source), answer=lambda call: None)
        missing = "; pass None where one is missing"
        nan, moment, nothing = (f"{what} a toolkit can take{missing}" for what in ("nan is no number", "NaT is no time", "NA is no value"))
        self.assertEqual(json.loads(played.contents["told"]), [nan] * 5 + [moment] * 3 + [nothing] * 2 + ["inf is no number a toolkit can take"])
        self.assertEqual(played.calls, [])
        played = child.play("import numpy as np\nkit.take(np.array(['2024-01-02', 'NaT'], 'M8[s]'), [None])", answer=lambda call: None)
        self.assertEqual(played.calls[0]["positional"], [["2024-01-02T00:00:00", None], [None]])

    def test_what_a_program_made_is_written_once(self):
        first = child.play("import numpy as np, pandas as pd\na = np.arange(3)\nt = pd.DataFrame({'n': a})\nx = np.float64(0.5)")
        self.assertEqual({"a", "t", "x", "np", "pd"}, set(first.written))
        self.assertEqual(first.written["t"]["preview"], "3 rows x 1 columns: n: int64")
        variables = [(name, entry["kind"], entry["content"]) for name, entry in first.written.items()]
        second = child.play("t['m'] = t['n'] * 2\nint(t['m'].sum()), a.sum() == 3, type(x).__name__", variables)
        self.assertEqual((second.ending["value"], set(second.written)), ("(6, np.True_, 'float64')", {"t"}))


if __name__ == "__main__":
    unittest.main()
