"""Values of pandas: tables, columns, indexes and moments, as their parts, their text and back, and how they are shown.

    pandas   [kind, part, …], where parts are values that are carried by themselves: arrays of numpy, indexes, names

A table is its columns one by one, its index and its names. It reads parts through pandas, never through the values in them, and
imports pandas only where text needs it; a program that did not has no such values.
"""


from _fimble import late_types, objects
from _fimble.carriable import HINTS, PACKAGED, NotCarried
from _fimble.codec import WRITERS, ZONES
from _fimble.decoding import READERS, package
from _fimble.preview import SHOWN, TYPE_NAMES

_INDEXES = ("Index", "CategoricalIndex", "DatetimeIndex", "TimedeltaIndex", "PeriodIndex", "IntervalIndex")
_MASKED = ("IntegerArray", "FloatingArray", "BooleanArray")
_SHOWN_ITEMS, _SHOWN_COLUMNS = 40, 20
_UNITS = ("s", "ms", "us", "ns")


def _own_attributes(value):
    """Raises NotCarried if a program gave the table attributes that pandas does not know."""
    extra = [name for name in object.__getattribute__(value, "__dict__") if not name.startswith("_")]
    if extra:
        raise NotCarried(f"it has attributes of its own, like `{extra[0][:60]}`; keep them in `attrs` or in a variable")


def _array(values):
    """The array of a column: of numpy where it is one."""
    array = values.array
    return values.to_numpy() if objects.class_name(type(array)) in ("NumpyExtensionArray", "PandasArray") else array


def _series(value):
    _own_attributes(value)
    return _array(value), value.index, value.name, dict(value.attrs), value.flags.allows_duplicate_labels


def _frame(value):
    _own_attributes(value)
    columns = value.columns
    arrays = []
    for number in range(len(columns)):
        array = _array(value.iloc[:, number])
        if id(type(array)) not in PACKAGED:
            raise NotCarried(f"its column {str(columns[number])[:60]!r} is of a dtype that cannot be carried; convert it with .astype")
        arrays.append(array)
    return arrays, value.index, columns, dict(value.attrs), value.flags.allows_duplicate_labels


def _index(value):
    freq = getattr(value, "freqstr", None) if objects.class_name(type(value)) != "PeriodIndex" else None
    return _array(value), value.name, freq


def _levels(value):
    return list(value.levels), [code.astype("i8") for code in map(_numbers, value.codes)], list(value.names), value.sortorder


def _numbers(values):
    return package("numpy").asarray(values)


def _zone(value):
    """A time zone as a carried value. Raises NotCarried."""
    zone = value.tz
    if zone is None or id(type(zone)) in ZONES:
        return zone
    module, name = objects.class_path(type(zone))
    if module.partition(".")[0] == "pytz" and type(getattr(zone, "zone", None)) is str:
        return _Pytz(zone.zone)
    raise NotCarried(f"its time zone is a {name[:60]}; use datetime.timezone or ZoneInfo")


class _Pytz:
    """The name of a zone of the package pytz."""

    def __init__(self, key):
        self.key = key


def _moments(value):
    unit = getattr(value, "unit", "ns")
    return value.asi8.view(f"M8[{unit}]"), _zone(value)


def _timestamp(value):
    bare = value.to_datetime64()
    zone = _zone(value)
    return int(bare.view("i8")), package("numpy").datetime_data(bare.dtype)[0], zone, value.fold


def _timedelta(value):
    bare = value.to_timedelta64()
    return int(bare.view("i8")), package("numpy").datetime_data(bare.dtype)[0]


def _text(value):
    dtype = value.dtype
    missing = "NA" if dtype.na_value is package("pandas").NA else "nan"
    items = [None if absent else item for item, absent in zip(value.tolist(), value.isna().tolist())]
    return dtype.storage, missing, [item if item is None or type(item) is str else str.__str__(item) for item in items]


# A kind's parts, by its name.
_PARTS = {
    "Series": _series,
    "DataFrame": _frame,
    "RangeIndex": lambda value: (value.start, value.stop, value.step, value.name),
    "MultiIndex": _levels,
    **dict.fromkeys(_INDEXES, _index),
    "Categorical": lambda value: (value.codes, value.categories, bool(value.ordered)),
    "DatetimeArray": _moments,
    "TimedeltaArray": lambda value: (value.asi8.view(f"m8[{getattr(value, 'unit', 'ns')}]"),),
    "PeriodArray": lambda value: (value.asi8, value.freqstr),
    "IntervalArray": lambda value: (value.left, value.right, value.closed),
    **dict.fromkeys(_MASKED, lambda value: (value._data, value._mask)),
    "StringArray": _text,
    "Timestamp": _timestamp,
    "Timedelta": _timedelta,
    "Period": lambda value: (value.ordinal, value.freqstr),
    "Interval": lambda value: (value.left, value.right, value.closed),
    "NaTType": lambda value: (),
    "NAType": lambda value: (),
    "_Pytz": lambda value: (value.key,),
}  # fmt: skip


def _of_objects(array):
    return getattr(array.dtype, "char", "") == "O"


def _make_series(pandas, array, index, name, attrs, duplicates):
    dtype = {"dtype": object} if _of_objects(array) else {}
    return _with_extras(pandas.Series(array, index=index, name=name, **dtype), attrs, duplicates)


def _make_frame(pandas, arrays, index, columns, attrs, duplicates):
    if len(arrays) != len(columns) or any(len(array) != len(index) for array in arrays):
        raise ValueError("the columns of a table are of different lengths")
    series = {number: pandas.Series(array, index=index, **({"dtype": object} if _of_objects(array) else {})) for number, array in enumerate(arrays)}
    value = pandas.DataFrame(series, index=index)
    value.columns = columns
    return _with_extras(value, attrs, duplicates)


def _with_extras(value, attrs, duplicates):
    value.attrs.update(attrs)
    if duplicates is False:
        value.flags.allows_duplicate_labels = False
    return value


def _make_index(pandas, kind, array, name, freq):
    if kind == "Index":
        # With a dtype pandas does not look for a better one.
        return pandas.Index(array, dtype=array.dtype, name=name)
    return getattr(pandas, kind)(array, name=name, **({} if freq is None else {"freq": freq}))


def _make_levels(pandas, levels, codes, names, sortorder):
    return pandas.MultiIndex(levels=levels, codes=codes, names=names, sortorder=sortorder)


def _make_moments(pandas, array, zone):
    moments = pandas.DatetimeIndex(array)
    return (moments if zone is None else moments.tz_localize("UTC").tz_convert(zone)).array


def _make_timestamp(pandas, number, unit, zone, fold):
    value = pandas.Timestamp(_amount("datetime64", number, unit))
    if zone is not None:
        return value.tz_localize("UTC").tz_convert(zone)
    return value.replace(fold=1) if fold else value


def _amount(kind, number, unit):
    if unit not in _UNITS:
        raise ValueError(f"pandas has no unit {str(unit)[:20]!r}")
    return getattr(package("numpy"), kind)(number, unit)


def _make_text(pandas, storage, missing, items):
    if any(item is not None and type(item) is not str for item in items):
        raise ValueError("an array of text holds text")
    if missing == "NA":
        return pandas.array(items, dtype=pandas.StringDtype(storage))
    return pandas.array(items, dtype=pandas.StringDtype(storage, na_value=float("nan")))


# What makes a value of its parts, by the name of its kind.
_MAKE = {
    "Series": _make_series,
    "DataFrame": _make_frame,
    "RangeIndex": lambda pandas, start, stop, step, name: pandas.RangeIndex(start, stop, step, name=name),
    "MultiIndex": _make_levels,
    "Categorical": lambda pandas, codes, categories, ordered: pandas.Categorical.from_codes(codes, categories=categories, ordered=ordered),
    "DatetimeArray": _make_moments,
    "TimedeltaArray": lambda pandas, array: pandas.TimedeltaIndex(array).array,
    "PeriodArray": lambda pandas, ordinals, freq: pandas.PeriodIndex.from_ordinals(ordinals, freq=freq).array,
    "IntervalArray": lambda pandas, left, right, closed: pandas.arrays.IntervalArray.from_arrays(left, right, closed=closed),
    "StringArray": _make_text,
    "Timestamp": _make_timestamp,
    "Timedelta": lambda pandas, number, unit: pandas.Timedelta(_amount("timedelta64", number, unit)),
    "Period": lambda pandas, ordinal, freq: pandas.Period(ordinal=ordinal, freq=freq),
    "Interval": lambda pandas, left, right, closed: pandas.Interval(left, right, closed),
    "NaTType": lambda pandas: pandas.NaT,
    "NAType": lambda pandas: pandas.NA,
    "_Pytz": lambda pandas, key: package("pytz").timezone(key),
}


def _read(reader, parts, _):
    kind, *trees = parts
    pandas = package("pandas")
    made = reader.many(trees)
    if kind in _INDEXES:
        return _make_index(pandas, kind, *made)
    if kind in _MASKED:
        return getattr(pandas.arrays, kind)(*made)
    return _MAKE[kind](pandas, *made)


def _register(kind, name):
    look = _PARTS[name]
    PACKAGED[id(kind)] = lambda value: (list(look(value)), 32)
    WRITERS[id(kind)] = lambda _, build, parts: {"$": "pandas", "v": [name, *map(build, parts)]}


def _columns(value):
    columns = value.columns
    named = [f"{str(columns[number])[:40]}: {value.dtypes.iloc[number]}" for number in range(min(len(columns), _SHOWN_COLUMNS))]
    return f"{_rows(value)} x {len(columns):,} columns: {', '.join(named)}{', …' if len(columns) > _SHOWN_COLUMNS else ''}"


def _rows(value):
    return f"{len(value):,} row{'' if len(value) == 1 else 's'}"


def _items(value):
    """The first items as a list that shows what it holds."""
    return list(value[:_SHOWN_ITEMS]) if objects.class_name(type(value)) != "Series" else list(value.iloc[:_SHOWN_ITEMS])


def _dtype_name(dtype):
    name = str(dtype)
    return name if name.isidentifier() else objects.class_name(type(dtype)) if "[" not in name else name.partition("[")[0]


def _learn(pandas):
    arrays = pandas.arrays
    for name in ("Series", "DataFrame", "RangeIndex", "MultiIndex", "Categorical", "Timestamp", "Timedelta", "Period", "Interval", *_INDEXES):
        kind = getattr(pandas, name)
        _register(kind, name)
        TYPE_NAMES[id(kind)] = lambda value, name=name: name
        SHOWN[id(kind)] = _items
    for name in ("DatetimeArray", "TimedeltaArray", "PeriodArray", "IntervalArray", *_MASKED):
        _register(getattr(arrays, name), name)
        SHOWN[id(getattr(arrays, name))] = _items
    for kind in _text_arrays(pandas):
        _register(kind, "StringArray")
        SHOWN[id(kind)] = _items
    for missing, name in ((pandas.NaT, "NaTType"), (pandas.NA, "NAType")):
        _register(type(missing), name)
        SHOWN[id(type(missing))] = repr
    for name in ("Timestamp", "Timedelta", "Period", "Interval"):
        SHOWN[id(getattr(pandas, name))] = repr
    TYPE_NAMES[id(pandas.Series)] = lambda value: f"Series[{_dtype_name(value.dtype)}]"
    SHOWN[id(pandas.DataFrame)] = _columns
    _register(_Pytz, "_Pytz")
    HINTS[id(arrays.SparseArray)] = "cannot be carried; keep `.to_dense()` of it"
    HINTS[id(arrays.ArrowExtensionArray)] = "cannot be carried; convert it with .astype to a dtype of pandas or numpy"


def _text_arrays(pandas):
    """The classes of arrays of text that there are."""
    found = {pandas.arrays.StringArray, pandas.arrays.ArrowStringArray}
    for storage, given in (("python", {"na_value": float("nan")}), ("pyarrow", {"na_value": float("nan")})):
        try:
            found.add(type(pandas.array(["a"], dtype=pandas.StringDtype(storage, **given))))
        except (ImportError, TypeError, ValueError):
            # Without pyarrow, or in a version that has one kind of missing text.
            continue
    return found


READERS["pandas"] = _read
late_types.when("pandas", _learn)
