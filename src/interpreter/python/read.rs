//! JSON text as Python objects, without a tree of our own in between.

use std::cell::RefCell;
use std::fmt;

use pyo3::exceptions::{PyMemoryError, PyRecursionError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyType};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The most levels of a text. What a program keeps has 300 of its own, of three levels of text at most.
const DEPTH: u32 = 1_200;

/// Texts of more bytes than this are read with the garbage collector standing still: nothing of them can be garbage.
const LONG: usize = 4 * 1024;

/// Keys that are remembered while a text is read, and the most bytes of one.
const KEYS: usize = 256;
const KEY: usize = 64;

/// Reads `text`, a `str` or UTF-8 `bytes` with one JSON value. Its objects become instances of `record`, a class derived
/// from `dict`, or plain dicts without it.
///
/// Raises `ValueError` for what is no JSON, `RecursionError`, `MemoryError`.
#[pyfunction]
#[pyo3(signature = (text, record=None))]
pub(super) fn loads<'py>(text: &Bound<'py, PyAny>, record: Option<Bound<'py, PyType>>) -> PyResult<Bound<'py, PyAny>> {
    let python = text.py();
    let bytes = if let Ok(text) = text.cast::<PyBytes>() {
        text.as_bytes()
    } else if let Ok(text) = text.cast::<PyString>() {
        text.to_str()?.as_bytes()
    } else {
        return Err(PyTypeError::new_err("JSON text must be str or bytes"));
    };
    // Unescaping takes as much memory again, and Rust has no error for that.
    Vec::<u8>::new().try_reserve_exact(bytes.len()).map_err(|_| PyMemoryError::new_err(()))?;
    let reader = Reader { python, record, keys: RefCell::new(vec![None; KEYS]), raised: RefCell::new(None) };
    let _still = (bytes.len() > LONG).then(Standstill::begin);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    deserializer.disable_recursion_limit();
    let read = Node { reader: &reader, depth: 0 }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    read.map_err(|error| reader.raised.take().unwrap_or_else(|| PyValueError::new_err(error.to_string())))
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
    /// Recent keys, each at the place that its letters say.
    keys: RefCell<Vec<Option<Bound<'py, PyString>>>>,
    /// The exception that the error of the parser stands for.
    raised: RefCell<Option<PyErr>>,
}

impl<'py> Reader<'py> {
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
        let place = (key.len() * 31 + usize::from(*first) * 7 + usize::from(*last)) % KEYS;
        let mut keys = self.keys.borrow_mut();
        let Some(kept) = keys.get_mut(place) else { return PyString::new(self.python, key) };
        match kept {
            Some(known) if known.to_str().is_ok_and(|known| known == key) => known.clone(),
            _ => kept.insert(PyString::new(self.python, key)).clone(),
        }
    }

    fn object(&self) -> PyResult<Bound<'py, PyDict>> {
        match &self.record {
            None => Ok(PyDict::new(self.python)),
            Some(class) => Ok(class.call0()?.cast_into::<PyDict>()?),
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
        while let Some(key) = fields.next_key_seed(Key { reader: self.reader })? {
            let value = fields.next_value_seed(deeper)?;
            object.set_item(key, value).map_err(|error| self.reader.raise(error))?;
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
        Ok(self.reader.key(key))
    }
}
