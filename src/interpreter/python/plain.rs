//! Plain Python values as the JSON text that `python/codec.py` would write. It compares types exactly and runs no line of
//! a program; whatever is not plain is left to the other half, which also knows the reason.

use std::collections::HashSet;

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

/// The most levels of a value: `DEPTH` of `python/carriable.py`.
const DEPTH: u32 = 300;

/// Names an object that is no plain one, see `python/codec.py`.
const TAG: &str = "$";

/// The text of `value` in at most `cap` bytes, or None if it is not plain: a tree of None, bool, str, finite float, int of
/// 64 bits, list and dict, in which no container is met twice. In place of dicts, all of it may be of the class `record`.
///
/// Raises `MemoryError`.
#[pyfunction]
pub(super) fn plain(value: &Bound<'_, PyAny>, record: &Bound<'_, PyType>, cap: usize) -> PyResult<Option<String>> {
    let mut writer = Writer::new(record, cap);
    match writer.write(value, 0) {
        Ok(()) if !writer.has_record => Ok(Some(writer.text)),
        Ok(()) if writer.has_dict => Ok(None),
        Ok(()) => {
            let mut text = String::new();
            text.try_reserve_exact(writer.text.len() + 24).map_err(|_| PyMemoryError::new_err(()))?;
            text.push_str(r#"{"$":"records","v":"#);
            text.push_str(&writer.text);
            text.push('}');
            Ok(Some(text).filter(|text| text.len() <= cap))
        }
        Err(Stop::NotPlain) => Ok(None),
        Err(Stop::Memory) => Err(PyMemoryError::new_err(())),
    }
}

/// The body of a `CALL` frame in at most `cap` bytes, or None if an argument is not plain. `record` is a class whose
/// instances are written as objects, too; `site` is line and column.
///
/// Raises `MemoryError`.
#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "it is called from Python, where a structure would cost more than the rest"
)]
pub(super) fn call<'py>(
    id: u64,
    target: &Bound<'py, PyString>,
    method: &Bound<'py, PyString>,
    positional: &Bound<'py, PyTuple>,
    keyword: &Bound<'py, PyDict>,
    site: (u32, u32),
    ordinal: u32,
    record: &Bound<'py, PyType>,
    cap: usize,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let mut writer = Writer::new(record, cap);
    let mut write = || {
        writer.put(&format!("{{\"id\":{id},\"target\":"))?;
        writer.quote(target)?;
        writer.put(",\"method\":")?;
        writer.quote(method)?;
        writer.put(",\"positional\":[")?;
        for (index, value) in positional.iter_borrowed().enumerate() {
            if index > 0 {
                writer.put(",")?;
            }
            writer.write(&value, 1)?;
        }
        writer.put("],\"keyword\":")?;
        writer.object(keyword, 1)?;
        let (line, column) = site;
        writer.put(&format!(",\"line\":{line},\"column\":{column},\"ordinal\":{ordinal}}}"))
    };
    match write() {
        Ok(()) => Ok(Some(PyBytes::new(target.py(), writer.text.as_bytes()))),
        Err(Stop::NotPlain) => Ok(None),
        Err(Stop::Memory) => Err(PyMemoryError::new_err(())),
    }
}

enum Stop {
    NotPlain,
    Memory,
}

struct Writer<'a, 'py> {
    text: String,
    cap: usize,
    record: &'a Bound<'py, PyType>,
    /// The containers so far, by address.
    seen: HashSet<usize>,
    has_dict: bool,
    has_record: bool,
}

impl<'a, 'py> Writer<'a, 'py> {
    fn new(record: &'a Bound<'py, PyType>, cap: usize) -> Self {
        Self { text: String::new(), cap, record, seen: HashSet::new(), has_dict: false, has_record: false }
    }

    fn write(&mut self, value: &Bound<'_, PyAny>, depth: u32) -> Result<(), Stop> {
        if value.is_none() {
            return self.put("null");
        }
        if let Ok(value) = value.cast_exact::<PyString>() {
            return self.quote(value);
        }
        if let Ok(value) = value.cast_exact::<PyInt>() {
            let value: i64 = value.extract().map_err(|_| Stop::NotPlain)?;
            return self.put(&value.to_string());
        }
        if let Ok(value) = value.cast_exact::<PyBool>() {
            return self.put(if value.is_true() { "true" } else { "false" });
        }
        if let Ok(value) = value.cast_exact::<PyFloat>() {
            if !value.value().is_finite() {
                return Err(Stop::NotPlain);
            }
            let text = value.repr().map_err(|_| Stop::Memory)?;
            return self.put(text.to_str().map_err(|_| Stop::NotPlain)?);
        }
        self.seen.try_reserve(1).map_err(|_| Stop::Memory)?;
        if depth >= DEPTH || !self.seen.insert(value.as_ptr() as usize) {
            return Err(Stop::NotPlain);
        }
        if let Ok(list) = value.cast_exact::<PyList>() {
            return self.list(list, depth);
        }
        // SAFETY: the pointer is to a live object.
        let class = unsafe { ffi::Py_TYPE(value.as_ptr()) };
        if class == self.record.as_type_ptr() {
            self.has_record = true;
        } else if value.is_exact_instance_of::<PyDict>() {
            self.has_dict = true;
        } else {
            return Err(Stop::NotPlain);
        }
        self.object(value.cast::<PyDict>().map_err(|_| Stop::NotPlain)?, depth)
    }

    fn list(&mut self, list: &Bound<'_, PyList>, depth: u32) -> Result<(), Stop> {
        self.put("[")?;
        for (index, item) in list.iter().enumerate() {
            if index > 0 {
                self.put(",")?;
            }
            self.write(&item, depth + 1)?;
        }
        self.put("]")
    }

    fn object(&mut self, object: &Bound<'_, PyDict>, depth: u32) -> Result<(), Stop> {
        self.put("{")?;
        for (index, (key, item)) in object.iter().enumerate() {
            if index > 0 {
                self.put(",")?;
            }
            let key = key.cast_exact::<PyString>().map_err(|_| Stop::NotPlain)?;
            if key.to_str().is_ok_and(|key| key == TAG) {
                return Err(Stop::NotPlain);
            }
            self.quote(key)?;
            self.put(":")?;
            self.write(&item, depth + 1)?;
        }
        self.put("}")
    }

    fn quote(&mut self, text: &Bound<'_, PyString>) -> Result<(), Stop> {
        // One with a lone surrogate has no UTF-8.
        let text = text.to_str().map_err(|_| Stop::NotPlain)?;
        self.put("\"")?;
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
            let (before, from) = rest.split_at(at);
            self.put(before)?;
            match from.as_bytes().first() {
                Some(b'"') => self.put("\\\""),
                Some(b'\\') => self.put("\\\\"),
                Some(b'\n') => self.put("\\n"),
                Some(b'\r') => self.put("\\r"),
                Some(b'\t') => self.put("\\t"),
                Some(b'\x08') => self.put("\\b"),
                Some(b'\x0c') => self.put("\\f"),
                Some(byte) => self.put(&format!("\\u{byte:04x}")),
                None => Ok(()),
            }?;
            rest = from.get(1..).unwrap_or_default();
        }
        self.put(rest)?;
        self.put("\"")
    }

    fn put(&mut self, piece: &str) -> Result<(), Stop> {
        if self.text.len() + piece.len() > self.cap {
            return Err(Stop::NotPlain);
        }
        self.text.try_reserve(piece.len()).map_err(|_| Stop::Memory)?;
        self.text.push_str(piece);
        Ok(())
    }
}
