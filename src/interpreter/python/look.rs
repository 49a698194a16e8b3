//! A look at plain values at a program's end: which of them are as they came in, and what is said of the others. It says
//! what `python/capture.py` and `python/preview.py` say, and leaves to them whatever is not plain.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyRange, PyString, PyType};

use super::plain::plain;

/// Items of a list or dict whose types are named.
const SAMPLE: usize = 100;

/// The most types that are named of them.
const TYPES: usize = 3;

/// The most levels that are shown.
const LEVELS: u32 = 20;

/// Characters of a preview.
const PREVIEW: usize = 80;

/// Pairs of the namespace, in its order, without the variables that are as they came in: the same object, which cannot
/// change, or a plain one that is still written as it was. `restored` holds a `Restored` for each name that came in; `cap` is
/// the most bytes of one text.
///
/// Raises `MemoryError`.
#[pyfunction]
pub(super) fn unsettled<'py>(
    namespace: &Bound<'py, PyDict>,
    restored: &Bound<'py, PyDict>,
    record: &Bound<'py, PyType>,
    cap: usize,
) -> PyResult<Bound<'py, PyList>> {
    let left = PyList::empty(namespace.py());
    for (name, value) in namespace.iter() {
        let is_settled = match name.cast_exact::<PyString>() {
            Ok(name) => match restored.get_item(name)? {
                Some(known) => is_as_it_came(&known, &value, record, cap)?,
                None => false,
            },
            Err(_) => false,
        };
        if !is_settled {
            left.append((name, value))?;
        }
    }
    Ok(left)
}

fn is_as_it_came(
    known: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    record: &Bound<'_, PyType>,
    cap: usize,
) -> PyResult<bool> {
    let python = value.py();
    if !known.getattr(intern!(python, "value"))?.is(value)
        || known.getattr(intern!(python, "kind"))?.cast::<PyString>()? != "value"
    {
        return Ok(false);
    }
    if is_immutable(value) {
        return Ok(true);
    }
    let content = known.getattr(intern!(python, "content"))?;
    Ok(match plain(value, record, cap)? {
        Some(text) => content.cast::<PyString>()?.to_str()? == text,
        None => false,
    })
}

fn is_immutable(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyBytes>()
        || value.is_exact_instance_of::<PyComplex>()
        || value.is_exact_instance_of::<PyRange>()
}

/// The text of a plain value in at most `cap` bytes, its type and its preview; None if it is not plain.
///
/// Raises `MemoryError`.
#[pyfunction]
pub(super) fn describe(
    value: &Bound<'_, PyAny>,
    record: &Bound<'_, PyType>,
    cap: usize,
) -> PyResult<Option<(String, String, String)>> {
    let Some(text) = plain(value, record, cap)? else { return Ok(None) };
    let mut preview = Preview { text: String::new(), left: PREVIEW as isize };
    preview.write(value, 0)?;
    Ok(Some((text, type_of(value), cut(preview.text))))
}

fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(PREVIEW - 1)
        && text.get(at..).is_some_and(|rest| rest.chars().nth(1).is_some())
    {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// The name of a plain value's class; a record is a dict to the reader.
fn short_name(value: &Bound<'_, PyAny>) -> &'static str {
    if value.is_none() {
        "None"
    } else if value.is_exact_instance_of::<PyString>() {
        "str"
    } else if value.is_exact_instance_of::<PyInt>() {
        "int"
    } else if value.is_exact_instance_of::<PyBool>() {
        "bool"
    } else if value.is_exact_instance_of::<PyFloat>() {
        "float"
    } else if value.is_exact_instance_of::<PyList>() {
        "list"
    } else {
        "dict"
    }
}

fn type_of(value: &Bound<'_, PyAny>) -> String {
    if let Ok(list) = value.cast_exact::<PyList>() {
        let inner = union(list.iter().take(SAMPLE));
        return if inner.is_empty() { "list".to_owned() } else { format!("list[{inner}]") };
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        let keys = union(dict.iter().take(SAMPLE).map(|(key, _)| key));
        let items = union(dict.iter().take(SAMPLE).map(|(_, item)| item));
        let told = !keys.is_empty() && !items.is_empty();
        return if told { format!("dict[{keys}, {items}]") } else { "dict".to_owned() };
    }
    short_name(value).to_owned()
}

fn union<'py>(values: impl Iterator<Item = Bound<'py, PyAny>>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for value in values {
        let name = short_name(&value);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() <= TYPES { names.join(" | ") } else { String::new() }
}

/// Writes until its characters are there, then stops looking.
struct Preview {
    text: String,
    left: isize,
}

impl Preview {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.left -= text.chars().count() as isize;
    }

    fn put_repr(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(value.repr()?.to_str()?);
        Ok(())
    }

    fn write(&mut self, value: &Bound<'_, PyAny>, depth: u32) -> PyResult<()> {
        if let Ok(text) = value.cast_exact::<PyString>() {
            let room = usize::try_from(self.left).unwrap_or(0);
            // SAFETY: the pointer is to a live string.
            let length = unsafe { ffi::PyUnicode_GetLength(text.as_ptr()) };
            if usize::try_from(length).unwrap_or(0) <= room {
                return self.put_repr(value);
            }
            let beginning: String = text.to_str()?.chars().take(room + 1).collect();
            return self.put_repr(PyString::new(value.py(), &beginning).as_any());
        }
        let list = value.cast_exact::<PyList>().ok();
        let dict = if list.is_some() { None } else { value.cast::<PyDict>().ok() };
        if list.is_none() && dict.is_none() {
            return self.put_repr(value);
        }
        if depth > LEVELS {
            self.put("…");
            return Ok(());
        }
        if let Some(list) = list {
            self.put("[");
            for (index, item) in list.iter().enumerate() {
                if !self.goes_on(index) {
                    break;
                }
                self.write(&item, depth + 1)?;
            }
            self.put("]");
        }
        if let Some(dict) = dict {
            self.put("{");
            for (index, (key, item)) in dict.iter().enumerate() {
                if !self.goes_on(index) {
                    break;
                }
                self.write(&key, depth + 1)?;
                self.put(": ");
                self.write(&item, depth + 1)?;
            }
            self.put("}");
        }
        Ok(())
    }

    fn goes_on(&mut self, index: usize) -> bool {
        if index > 0 {
            self.put(", ");
        }
        self.left > 0
    }
}
