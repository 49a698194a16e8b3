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

/// The only file that may call a toolkit, and the toolkits that are part of the gate.
const DOORS: [&str; 3] = ["src/gate/call.rs", "src/gate/cards.rs", "src/gate/system.rs"];

#[test]
fn a_toolkit_is_called_at_the_gate_and_nowhere_else() {
    // Whoever cannot name a `Call` cannot make one, and without one no toolkit can be called.
    let mut wrong = Vec::new();
    // Tests implement toolkits of their own.
    for file in sources(&["src"], &["rs"]).into_iter().filter(|file| !file.ends_with("tests.rs")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let is_door = DOORS.iter().any(|door| file == Path::new(door)) || is_test(&file);
        wrong.extend(
            ways_to_a_toolkit(&text).into_iter().filter(|_| !is_door).map(|way| format!("{}: {way}", file.display())),
        );
    }
    assert_eq!(wrong, Vec::<String>::new());
    let door = std::fs::read_to_string(DOORS[0]).unwrap();
    for way in ["toolkit.begin(call)", "toolkit.poll(call, task)", "toolkit.abandon(call, task)", "Call { operation"] {
        assert_eq!(door.matches(way).count(), 1, "the gate has one door: {way}");
    }
}

#[test]
fn each_way_around_the_gate_is_seen() {
    for (text, expected) in [
        ("use fimble_toolkit::Call;", 1),
        ("use fimble_toolkit::{\n    Call, ToolError,\n};", 1),
        ("use fimble_toolkit::{Call as Order};", 1),
        ("use fimble_toolkit::*;", 1),
        ("use fimble_toolkit as other;", 1),
        ("let call = fimble_toolkit::Call { operation };", 1),
        ("Toolkit::call(&found, made)", 1),
        ("<dyn Toolkit>::call(&*found, made)", 1),
        ("use fimble_http::{Http, Request};", 1),
        ("Toolkit::begin(&found, made)", 1),
        ("use fimble_toolkit::{ToolError, Toolkit};\n// fimble_toolkit::Call\nlet x = HostCall { id };", 0),
    ] {
        assert_eq!(ways_to_a_toolkit(text).len(), expected, "{text}");
    }
}

/// True for a module that its parent has for tests alone.
fn is_test(file: &Path) -> bool {
    let Some(name) = file.file_stem().and_then(|stem| stem.to_str()).filter(|stem| stem.ends_with("tests")) else {
        return false;
    };
    let folder = file.parent().unwrap();
    let parents = [folder.join("mod.rs"), folder.with_extension("rs")];
    let parent = parents.iter().find_map(|parent| std::fs::read_to_string(parent).ok()).unwrap_or_default();
    parent.contains(&format!("#[cfg(test)]\nmod {name};"))
}

/// What in a source makes or calls with a toolkit's `Call`.
fn ways_to_a_toolkit(text: &str) -> Vec<String> {
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let mut ways = Vec::new();
    // A toolkit's own crate may send a request of its own; the runtime may not.
    let crates = ["fimble_toolkit", "fimble_http"];
    let named =
        crates.iter().flat_map(|name| code.match_indices(name).map(|(at, _)| (*name, &code[at + name.len()..])));
    for (whose, rest) in named {
        let named = match (rest.strip_prefix("::{"), rest.strip_prefix("::")) {
            (Some(group), _) => group.split('}').next().unwrap_or_default(),
            (_, Some(path)) => path.split([';', ',', '(', '{', ' ', ')', '>', '\n']).next().unwrap_or_default(),
            _ if rest.starts_with(" as ") => "*",
            _ => continue,
        };
        let mut words = named.split(|letter: char| !(letter.is_alphanumeric() || "_*".contains(letter)));
        if let Some(word) = words.find(|word| matches!(*word, "Call" | "Request" | "*" | "expansion")) {
            ways.push(format!("`{whose}::{word}`"));
        }
    }
    let methods = ["call", "begin", "poll", "abandon"].into_iter();
    let calls = methods.flat_map(|method| [format!("Toolkit::{method}("), format!("Toolkit>::{method}(")]);
    ways.extend(calls.filter(|call| code.contains(call)));
    ways
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
