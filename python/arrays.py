"""Arrays, scalars and dtypes of numpy: what they hold, their text and back, and how they are shown.

    ndarray  "base64 of the items", or [items] of objects and of text, with "d": dtype, "s": shape, "o": "F" if the items are
             in Fortran's order, "w": 0 if it is read-only
    numpy    [dtype, "base64"], or [class, text or bytes] for text, bytes and void without fields
    dtype    "<f8" and the like, [dtype, shape] of a subarray, an object with names, formats, offsets and itemsize of a
             structure, or an object with "text": coerce, and its "na"

It imports numpy only where text needs it; a program that did not has no such values. What is read may be anybody's:
dtypes are of a list, and the bytes are exactly those that the shape needs before an array is made.
"""

import math
from binascii import a2b_base64, b2a_base64

from _fimble import late_types, objects
from _fimble.carriable import HINTS, PACKAGED, NotCarried
from _fimble.codec import WRITERS
from _fimble.decoding import EMPTY, FILLERS, READERS, package
from _fimble.preview import SHOWN, TYPE_NAMES

_PLAIN = (
    r"[<>|=](?:b1|[iu][1248]|f(?:2|4|8|12|16)|c(?:8|16|24|32)|[SUV]\d{1,9}|O|[mM]8(?:\[\d{0,9}(?:[YMWDhmsμ]|[munpfa]s|generic)\])?)"
)
re = late_types.Module("re")
# Levels of structures within structures, and dimensions.
_NESTED, _DIMENSIONS = 20, 64
# Types above are no part of numpy itself.
_LAST_TYPE = 23
# A preview has no room for more.
_SHOWN_ITEMS = 40


def base64_size(count):
    """Characters of so many bytes."""
    return 4 * ((count + 2) // 3)


def holds(value):
    """What an array holds, and the bytes that its own content takes. Raises NotCarried."""
    dtype = value.dtype
    describe(dtype)
    if dtype.char == "O" or dtype.char == "T":
        if value.size > 1 << 24:
            return (), 2 * value.size
        return _items(value), 64
    return (), base64_size(value.nbytes) + 64


def _items(value):
    """The items of an array of objects or text, in the order in which they are written."""
    return value.flatten(_order(value)).tolist() if value.dtype.char == "T" else list(value.flatten(_order(value)))


def _order(value):
    flags = value.flags
    return "F" if flags.f_contiguous and not flags.c_contiguous else "C"


def describe(dtype, depth=0):
    """The dtype as JSON, but for the object that stands for missing text. Raises NotCarried."""
    if depth > _NESTED:
        raise NotCarried(f"its dtype is nested deeper than {_NESTED} levels")
    if dtype.metadata:
        raise NotCarried("its dtype has metadata of its own; drop it with .astype")
    if dtype.char == "T":
        return {"text": dtype.coerce}
    if dtype.subdtype is not None:
        return [describe(dtype.subdtype[0], depth + 1), list(dtype.shape)]
    if dtype.names is not None:
        if dtype.hasobject:
            raise NotCarried("its fields hold objects; keep them in lists")
        fields = [dtype.fields[name] for name in dtype.names]
        tree = {
            "names": list(dtype.names), "formats": [describe(field[0], depth + 1) for field in fields],
            "offsets": [field[1] for field in fields], "itemsize": dtype.itemsize,
        }  # fmt: skip
        if any(len(field) > 2 for field in fields):
            tree["titles"] = [field[2] if len(field) > 2 and type(field[2]) is str else None for field in fields]
        if dtype.isalignedstruct:
            tree["aligned"] = True
        return tree
    if dtype.num > _LAST_TYPE or not re.fullmatch(_PLAIN, dtype.str):
        raise NotCarried(f"its dtype is a {objects.class_name(type(dtype))}; convert it with .astype")
    return dtype.str


def _dtype_tree(dtype, build):
    tree = describe(dtype)
    if dtype.char == "T" and hasattr(dtype, "na_object"):
        tree["na"] = build(dtype.na_object)
    return tree


def dtype_of(reader, tree, depth=0):
    """The dtype that a tree describes. Raises ValueError for what `describe` does not write."""
    numpy = package("numpy")
    if type(tree) is str:
        if not re.fullmatch(_PLAIN, tree):
            raise ValueError(f"no dtype is called {tree[:40]!r}")
        return numpy.dtype(tree)
    if depth > _NESTED:
        raise ValueError("a dtype is nested too deep")
    if type(tree) is list:
        base, shape = tree
        return numpy.dtype((dtype_of(reader, base, depth + 1), _shape(shape)))
    if "text" in tree:
        missing = {"na_object": reader.read(tree["na"])} if "na" in tree else {}
        return numpy.dtypes.StringDType(coerce=tree["text"] is True, **missing)
    parts = {"names": tree["names"], "formats": [dtype_of(reader, one, depth + 1) for one in tree["formats"]]}
    parts.update(offsets=tree["offsets"], itemsize=tree["itemsize"])
    if "titles" in tree:
        parts["titles"] = tree["titles"]
    dtype = numpy.dtype(parts, align=tree.get("aligned") is True)
    if dtype.hasobject:
        raise ValueError("the fields of a structure are no objects")
    return dtype


def _shape(parts):
    if type(parts) is not list or len(parts) > _DIMENSIONS or any(type(one) is not int or one < 0 for one in parts):
        raise ValueError("that is no shape")
    return tuple(parts)


def _write(value, build, items):
    dtype, order = value.dtype, _order(value)
    tree = {"$": "ndarray", "v": None, "d": _dtype_tree(dtype, build), "s": list(value.shape)}
    if order == "F":
        tree["o"] = "F"
    if not value.flags.writeable:
        tree["w"] = 0
    if dtype.char == "O" or dtype.char == "T":
        # Of very many it is not looked at one by one.
        tree["v"] = list(map(build, items or _items(value)))
    else:
        tree["v"] = b2a_base64(value.tobytes(order), newline=False).decode()
    return tree


def _empty(reader, tree):
    """The array without the objects that it holds."""
    numpy = package("numpy")
    dtype, shape, order = dtype_of(reader, tree["d"]), _shape(tree["s"]), "F" if tree.get("o") == "F" else "C"
    content, size = tree["v"], math.prod(shape)
    if type(content) is list:
        if dtype.char not in "OT" or len(content) != size:
            raise ValueError(f"{len(content)} items are no array of the shape {shape}")
        return numpy.empty(shape, dtype, order)
    if dtype.hasobject or dtype.char == "T":
        raise ValueError("objects are no bytes")
    raw = a2b_base64(content, strict_mode=True)
    if len(raw) != size * dtype.itemsize:
        raise ValueError(f"{len(raw)} bytes are no array of the shape {shape} and the dtype {dtype.str}")
    value = numpy.empty(shape, dtype, order)
    if raw:
        # Into memory of the array's own, with what is between the fields of a structure.
        value.reshape(-1, order=order).view("u1")[:] = numpy.frombuffer(raw, "u1")
    return value


def _fill(reader, value, tree):
    if type(tree["v"]) is list:
        flat = value.reshape(-1, order="F" if tree.get("o") == "F" else "C")
        reader.into_places(flat, tree["v"])
    if tree.get("w") == 0:
        value.setflags(write=False)


def _write_scalar(value, build, _):
    kind = type(value)
    dtype = value.dtype
    if dtype.char == "U":
        return {"$": "numpy", "v": ["str_", build(str.__str__(value))]}
    if dtype.char == "S":
        return {"$": "numpy", "v": ["bytes_", build(bytes.__getitem__(value, slice(None)))]}
    if kind.__name__ == "void" and dtype.names is None:
        return {"$": "numpy", "v": ["void", build(value.tobytes())]}
    return {"$": "numpy", "v": [describe(dtype), b2a_base64(value.tobytes(), newline=False).decode()]}


def _read_scalar(reader, parts, _):
    numpy = package("numpy")
    kind, content = parts
    if kind in ("str_", "bytes_", "void"):
        content = reader.read(content)
        if type(content) is not (str if kind == "str_" else bytes):
            raise ValueError("that is no text of a numpy scalar")
        return getattr(numpy, kind)(content)
    dtype, raw = dtype_of(reader, kind), a2b_base64(content, strict_mode=True)
    if dtype.hasobject or len(raw) != dtype.itemsize or not raw:
        raise ValueError(f"{len(raw)} bytes are no scalar of the dtype {dtype.str}")
    return numpy.frombuffer(bytearray(raw), dtype)[0]


def _shown(value):
    """What a preview shows in an array's place: a list of items, or of arrays with a dimension less."""
    if value.ndim > 1:
        return list(value[:_SHOWN_ITEMS])
    few = value[:_SHOWN_ITEMS] if value.ndim else value.reshape(1)
    items = list(few) if value.dtype.char == "O" else few.astype(str).tolist() if value.dtype.char in "mM" else few.tolist()
    return items


def _type_name(value):
    shape = ", ".join(map(str, value.shape)) + ("," if value.ndim == 1 else "")
    return f"ndarray[{_short(value.dtype)}, ({shape})]"


def _short(dtype):
    """The dtype's name, or the names of its fields: an expression of Python, because a prompt is a program."""
    names = dtype.names
    if names is not None and all(type(name) is str and name.isidentifier() for name in names[:8]):
        return "{" + ", ".join(names[:8]) + (", ...}" if len(names) > 8 else "}")
    named = {"V": "void", "U": "str", "T": "str", "S": "bytes"}.get(dtype.char)
    return named or (dtype.name if "[" not in dtype.name or dtype.name.partition("[")[2][0].isalpha() else dtype.name.partition("[")[0])


def _learn(numpy):
    scalars = {numpy.dtype(code).type for code in numpy.typecodes["All"]} - {numpy.object_}
    dtypes = {type(numpy.dtype(code)) for code in numpy.typecodes["All"]}
    text = getattr(getattr(numpy, "dtypes", None), "StringDType", None)
    array = id(numpy.ndarray)
    PACKAGED[array], WRITERS[array], SHOWN[array], TYPE_NAMES[array] = holds, _write, _shown, _type_name
    for kind in scalars:
        PACKAGED[id(kind)], WRITERS[id(kind)] = lambda value: ((), base64_size(value.nbytes)), _write_scalar
        SHOWN[id(kind)] = repr
    for kind in {*dtypes, *([text] if text else [])}:
        PACKAGED[id(kind)] = lambda value: ((), len(repr(describe(value))))
        WRITERS[id(kind)] = lambda value, build, _: {"$": "dtype", "v": _dtype_tree(value, build)}
        SHOWN[id(kind)], TYPE_NAMES[id(kind)] = (lambda value: _short(value)), (lambda value: "dtype")
    HINTS[id(numpy.ma.MaskedArray)] = "cannot be carried; keep its `data` and its `mask`"
    HINTS[id(numpy.matrix)] = HINTS[id(numpy.memmap)] = HINTS[id(numpy.recarray)] = "cannot be carried; keep `np.array` of it"
    HINTS[id(numpy.random.Generator)] = "cannot be carried; keep its `bit_generator.state`, or its seed"


EMPTY["ndarray"] = _empty
FILLERS["ndarray"] = _fill
READERS["numpy"] = _read_scalar
READERS["dtype"] = lambda reader, tree, _: dtype_of(reader, tree)
late_types.when("numpy", _learn)
