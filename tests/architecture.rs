//! The house rules that a machine can check: layers, sizes, first lines, and where CPython is linked.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The rows of the house, the lowest first. A module may use modules of lower rows only.
const ROWS: &[&[&str]] = &[
    &["segment", "event", "record", "shape", "crash"],
    &["interpreter", "llm", "store"],
    &["prompt", "program", "registry"],
    &["memory", "session", "skill"],
    &["gate"],
    &["agent", "live"],
    &["server", "config", "worker"],
    &["cli"],
];

/// The most lines a source file may have.
const LONGEST: usize = 500;

/// File stems that say nothing.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "manager", "service", "factory", "types", "helpers", "misc"];

#[test]
fn modules_use_only_lower_rows() {
    let rows: BTreeMap<&str, usize> =
        ROWS.iter().enumerate().flat_map(|(row, names)| names.iter().map(move |name| (*name, row))).collect();
    let mut wrong = Vec::new();
    for file in sources(&["src"], &["rs"]) {
        let Some(module) = top_module(&file) else { continue };
        let row = rows.get(module.as_str()).unwrap_or_else(|| panic!("`{module}` has no row"));
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            for used in used_modules(line) {
                let is_wrong = used != module && rows.get(used.as_str()).is_some_and(|other| other >= row);
                if is_wrong {
                    wrong.push(format!("{}:{}: `{module}` uses `{used}`", file.display(), number + 1));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_module_of_the_library_has_a_row() {
    let lib = std::fs::read_to_string("src/lib.rs").unwrap();
    let declared = lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let without: Vec<&str> = declared.filter(|name| !ROWS.iter().any(|row| row.contains(name))).collect();
    assert_eq!(without, Vec::<&str>::new());
}

#[test]
fn cpython_is_linked_in_one_place() {
    let users: Vec<PathBuf> = sources(&["src", "toolkits"], &["rs"])
        .into_iter()
        .filter(|file| {
            let text = std::fs::read_to_string(file).unwrap();
            text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains("pyo3::"))
        })
        .filter(|file| file != "src/interpreter/python.rs" && !file.starts_with("src/interpreter/python"))
        .collect();
    assert_eq!(users, Vec::<PathBuf>::new());
}

#[test]
fn toolkits_know_nothing_of_the_runtime() {
    let users: Vec<PathBuf> = sources(&["toolkits"], &["rs"])
        .into_iter()
        .filter(|file| !file.components().any(|part| part.as_os_str() == "tests"))
        .filter(|file| std::fs::read_to_string(file).unwrap().lines().any(|line| line.starts_with("use fimble::")))
        .collect();
    assert_eq!(users, Vec::<PathBuf>::new());
}

#[test]
fn no_file_is_longer_than_five_hundred_lines() {
    let long: Vec<String> = sources(&["src", "toolkits", "python", "tests", "benches", "examples"], &["rs", "py"])
        .into_iter()
        .map(|file| (std::fs::read_to_string(&file).unwrap().lines().count(), file))
        .filter(|(lines, _)| *lines > LONGEST)
        .map(|(lines, file)| format!("{}: {lines}", file.display()))
        .collect();
    assert_eq!(long, Vec::<String>::new());
}

#[test]
fn every_file_begins_by_saying_what_it_is() {
    let silent: Vec<PathBuf> = sources(&["src", "toolkits", "tests"], &["rs"])
        .into_iter()
        .filter(|file| !file.components().any(|part| part.as_os_str() == "misuse"))
        .filter(|file| !std::fs::read_to_string(file).unwrap().starts_with("//!"))
        .collect();
    assert_eq!(silent, Vec::<PathBuf>::new());
}

#[test]
fn no_file_has_an_empty_name() {
    let empty: Vec<PathBuf> = sources(&["src", "toolkits", "python"], &["rs", "py"])
        .into_iter()
        .filter(|file| file.file_stem().is_some_and(|stem| EMPTY_NAMES.iter().any(|name| stem == *name)))
        .collect();
    assert_eq!(empty, Vec::<PathBuf>::new());
}

/// The files below `folders` with one of the extensions, in order.
fn sources(folders: &[&str], extensions: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in folders {
        collect(Path::new(folder), extensions, &mut files);
    }
    files.sort();
    assert!(!files.is_empty(), "no sources below {folders:?}");
    files
}

fn collect(folder: &Path, extensions: &[&str], files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target" && name != "__pycache__") {
                collect(&path, extensions, files);
            }
        } else if path.extension().is_some_and(|extension| extensions.iter().any(|known| extension == *known)) {
            files.push(path);
        }
    }
}

/// The top module that a file of `src/` belongs to; `None` for `lib.rs` and `main.rs`.
fn top_module(file: &Path) -> Option<String> {
    let first = file.components().nth(1)?.as_os_str().to_str()?.trim_end_matches(".rs").to_owned();
    (first != "lib" && first != "main").then_some(first)
}

/// The modules that a line names after `crate::`, also in a `use crate::{…}`.
fn used_modules(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in line.match_indices("crate::") {
        let rest = &line[at + "crate::".len()..];
        let parts: Vec<&str> = match rest.strip_prefix('{') {
            Some(group) => group.split([',', '}']).collect(),
            None => vec![rest],
        };
        for part in parts {
            let name: String = part.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if !name.is_empty() {
                names.push(name);
            }
        }
    }
    names
}
