//! JSON text as Python objects, without a tree of our own in between.

use std::cell::{Cell, RefCell};
use std::fmt;

use pyo3::exceptions::{PyMemoryError, PyRecursionError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The most levels of a text. What a program keeps has 300 of its own, of three levels of text at most.
const DEPTH: u32 = 1_200;

/// Texts of more bytes than this are read with the garbage collector standing still: nothing of them can be garbage.
const LONG: usize = 4 * 1024;

/// What the text of a value holds that is more than JSON.
const TAG: &str = "\"$\"";

/// The first key of what is more than JSON.
const TAG_KEY: &str = "$";

/// Keys that are remembered while a text is read, those of one of at most so many bytes, and the most bytes of one.
const KEYS: usize = 256;
const SHORT: usize = 512;
const FEW_KEYS: usize = 16;
const KEY: usize = 64;

/// Reads `text`, a `str` or UTF-8 `bytes` with one JSON value. Its objects become instances of `record`, a class derived
/// from `dict`, and `{"$": "bytes", "v": "Base64"}` bytes; without it they are plain dicts.
///
/// Raises `ValueError` for what is no JSON, `RecursionError`, `MemoryError`.
#[pyfunction]
#[pyo3(signature = (text, record=None))]
pub(super) fn loads<'py>(text: &Bound<'py, PyAny>, record: Option<Bound<'py, PyType>>) -> PyResult<Bound<'py, PyAny>> {
    let python = text.py();
    // Checked as a whole, the pieces need no look of their own.
    let text = if let Ok(text) = text.cast::<PyBytes>() {
        std::str::from_utf8(text.as_bytes()).map_err(|error| PyValueError::new_err(error.to_string()))?
    } else if let Ok(text) = text.cast::<PyString>() {
        text.to_str()?
    } else {
        return Err(PyTypeError::new_err("JSON text must be str or bytes"));
    };
    let reader = Reader::new(python, record, if text.len() > SHORT { KEYS } else { FEW_KEYS });
    let _still = (text.len() > LONG).then(Standstill::begin);
    reader.read(text)
}

/// The values of variables, dicts with `kind` and `content`: a tuple with the value where the content is plain JSON, else
/// None.
#[pyfunction]
pub(super) fn values<'py>(variables: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyList>> {
    let python = variables.py();
    let reader = Reader::new(python, None, KEYS);
    let list = PyList::empty(python);
    for variable in variables.iter() {
        let value = plain_value(&reader, variable.cast::<PyDict>()?)?;
        list.append(value.map(|value| (value,)))?;
    }
    Ok(list)
}

fn plain_value<'py>(reader: &Reader<'py>, variable: &Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let python = variable.py();
    let (Some(kind), Some(content)) =
        (variable.get_item(intern!(python, "kind"))?, variable.get_item(intern!(python, "content"))?)
    else {
        return Ok(None);
    };
    let content = content.cast::<PyString>()?.to_str()?;
    if kind.cast::<PyString>()? != "value" || content.contains(TAG) {
        return Ok(None);
    }
    // What is wrong with it is told where it is read again.
    Ok(reader.read(content).ok())
}

/// The garbage collector stands still while this lives.
struct Standstill {
    was_on: bool,
}

impl Standstill {
    fn begin() -> Self {
        // SAFETY: the interpreter is held by whoever called into this module.
        Self { was_on: unsafe { ffi::PyGC_Disable() } == 1 }
    }
}

impl Drop for Standstill {
    fn drop(&mut self) {
        if self.was_on {
            // SAFETY: as above.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}

struct Reader<'py> {
    python: Python<'py>,
    record: Option<Bound<'py, PyType>>,
    /// The arguments of a new record.
    nothing: Bound<'py, PyTuple>,
    /// Recent keys, each at the place that its letters say.
    keys: RefCell<Vec<Option<Bound<'py, PyString>>>>,
    /// The exception that the error of the parser stands for.
    raised: RefCell<Option<PyErr>>,
    /// The last key was [`TAG_KEY`].
    tagged: Cell<bool>,
}

impl<'py> Reader<'py> {
    fn new(python: Python<'py>, record: Option<Bound<'py, PyType>>, keys: usize) -> Self {
        let keys = RefCell::new(vec![None; keys]);
        Self {
            python,
            record,
            nothing: PyTuple::empty(python),
            keys,
            raised: RefCell::new(None),
            tagged: Cell::new(false),
        }
    }

    fn read(&self, text: &str) -> PyResult<Bound<'py, PyAny>> {
        // Unescaping takes as much memory again, and Rust has no error for that.
        Vec::<u8>::new().try_reserve_exact(text.len()).map_err(|_| PyMemoryError::new_err(()))?;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        deserializer.disable_recursion_limit();
        let read = Node { reader: self, depth: 0 }
            .deserialize(&mut deserializer)
            .and_then(|value| deserializer.end().map(|()| value));
        read.map_err(|error| self.raised.take().unwrap_or_else(|| PyValueError::new_err(error.to_string())))
    }

    fn raise<E: Error>(&self, error: PyErr) -> E {
        self.raised.replace(Some(error));
        E::custom("")
    }

    /// The same object for the same key, which saves its making and its hash.
    fn key(&self, key: &str) -> Bound<'py, PyString> {
        let (Some(first), Some(last)) = (key.as_bytes().first(), key.as_bytes().last()) else {
            return PyString::new(self.python, key);
        };
        if key.len() > KEY {
            return PyString::new(self.python, key);
        }
        let mut keys = self.keys.borrow_mut();
        let place = (key.len() * 31 + usize::from(*first) * 7 + usize::from(*last)) & (keys.len() - 1);
        let Some(kept) = keys.get_mut(place) else { return PyString::new(self.python, key) };
        match kept {
            Some(known) if known.to_str().is_ok_and(|known| known == key) => known.clone(),
            _ => kept.insert(PyString::new(self.python, key)).clone(),
        }
    }

    /// What a toolkit sends for bytes: `{"$": "bytes", "v": "Base64"}`. None for everything else, also where it is no Base64:
    /// what it is then stays as it came.
    fn bytes(&self, object: &Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let python = self.python;
        let (Some(kind), Some(text), 2) =
            (object.get_item(intern!(python, "$"))?, object.get_item(intern!(python, "v"))?, object.len())
        else {
            return Ok(None);
        };
        if !kind.cast::<PyString>().is_ok_and(|kind| kind.to_str().is_ok_and(|kind| kind == "bytes")) {
            return Ok(None);
        }
        let strict = PyDict::new(python);
        strict.set_item(intern!(python, "strict_mode"), true)?;
        let read = python.import(intern!(python, "binascii"))?.getattr(intern!(python, "a2b_base64"))?;
        match read.call((text,), Some(&strict)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_instance_of::<PyMemoryError>(python) => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn object(&self) -> PyResult<Bound<'py, PyDict>> {
        match &self.record {
            None => Ok(PyDict::new(self.python)),
            Some(class) => {
                let class = class.as_type_ptr();
                // SAFETY: the class is alive and held; what it makes is a new reference, or null with an exception set. A
                // class without a constructor of its own has that of `dict`, and nothing is left to initialise.
                let made = unsafe {
                    let Some(make) = (*class).tp_new else { return Ok(PyDict::new(self.python)) };
                    Bound::from_owned_ptr_or_err(self.python, make(class, self.nothing.as_ptr(), std::ptr::null_mut()))
                };
                Ok(made?.cast_into::<PyDict>()?)
            }
        }
    }
}

/// One value of the text.
#[derive(Clone, Copy)]
struct Node<'a, 'py> {
    reader: &'a Reader<'py>,
    depth: u32,
}

impl<'a, 'py> Node<'a, 'py> {
    fn deeper<E: Error>(self) -> Result<Node<'a, 'py>, E> {
        if self.depth >= DEPTH {
            return Err(self.reader.raise(PyRecursionError::new_err("the JSON text is nested too deep")));
        }
        Ok(Node { reader: self.reader, depth: self.depth + 1 })
    }
}

impl<'de, 'py> DeserializeSeed<'de> for Node<'_, 'py> {
    type Value = Bound<'py, PyAny>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, 'py> Visitor<'de> for Node<'_, 'py> {
    type Value = Bound<'py, PyAny>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(self.reader.python.None().into_bound(self.reader.python))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(PyBool::new(self.reader.python, value).to_owned().into_any())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(PyInt::new(self.reader.python, value).into_any())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(PyInt::new(self.reader.python, value).into_any())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(PyFloat::new(self.reader.python, value).into_any())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(PyString::new(self.reader.python, value).into_any())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let deeper = self.deeper()?;
        let list = PyList::empty(self.reader.python);
        while let Some(item) = items.next_element_seed(deeper)? {
            list.append(item).map_err(|error| self.reader.raise(error))?;
        }
        Ok(list.into_any())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let deeper = self.deeper()?;
        let object = self.reader.object().map_err(|error| self.reader.raise(error))?;
        let mut tagged = false;
        while let Some(key) = fields.next_key_seed(Key { reader: self.reader })? {
            tagged |= self.reader.tagged.replace(false);
            let value = fields.next_value_seed(deeper)?;
            object.set_item(key, value).map_err(|error| self.reader.raise(error))?;
        }
        if tagged
            && self.reader.record.is_some()
            && let Some(bytes) = self.reader.bytes(&object).map_err(|error| self.reader.raise(error))?
        {
            return Ok(bytes);
        }
        Ok(object.into_any())
    }
}

struct Key<'a, 'py> {
    reader: &'a Reader<'py>,
}

impl<'de, 'py> DeserializeSeed<'de> for Key<'_, 'py> {
    type Value = Bound<'py, PyString>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'py> Visitor<'_> for Key<'_, 'py> {
    type Value = Bound<'py, PyString>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        self.reader.tagged.set(key == TAG_KEY);
        Ok(self.reader.key(key))
    }
}
