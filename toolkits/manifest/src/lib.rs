//! Toolkits that need no Rust: TOML files whose operations are commands or HTTP requests.
//!
//! A value from a program is one argument of a command, or a part of one; it is never split and never read by a shell.
//! Each command is a process group of its own without standard input, with a small environment, a limit on its output,
//! and an end when nobody waits for it. What it does not protect: the command runs with the host's own rights, outside
//! of any jail, and a program that reads code from its arguments (`awk`, `ssh`, `python -c`, a shell's `eval` or
//! arithmetic) reads what the model put there.

mod body;
mod command;
mod operation;
mod output;
mod paging;
mod parameter;
mod problem;
mod process;
mod request;
mod running;
mod script;
mod template;
mod url;
mod written;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use fimble_toolkit::{Call, Declaration, ErrorKind, Preview, ToolError, Toolkit, is_python_name, named_value};
use serde_json::Value;

pub use operation::{DEFAULT_OUTPUT_KIB, MOST_OUTPUT_KIB, MOST_TIMEOUT_S};
pub use problem::Problem;

use operation::Operation;
use problem::Mistake;

/// The most bytes that a manifest can have: 1 MiB.
pub const MOST_MANIFEST_BYTES: u64 = 1024 * 1024;

/// The environment variables that every command gets, if the host has them.
pub const ENVIRONMENT: [&str; 3] = ["PATH", "HOME", "LANG"];

/// The toolkit that one file describes.
///
/// At the top: `name`, `description`, `environment` (names of variables, or of the host's secrets, that the commands get beside
/// [`ENVIRONMENT`] and that headers may name; default none), and `[[operation]]`s, each with
/// - `name`, `description`, and `risk`: `read`, `write` or `destructive`;
/// - either `command`: the argument vector. `{name}` is a parameter's value: an argument or a part of one. A list must be an
///   argument alone and becomes one for each item. An argument that mentions an absent value is left out. `\{name}` is
///   the text `{name}`. In the script of `sh -c` a value reads as a quoted word, an absent one as an empty word. A name
///   is looked for in `PATH`, a relative path in the manifest's folder;
/// - or `[operation.request]`, which is sent as [`fimble_http`] sends: `url`, whose path and query may have `{name}`s, encoded
///   there; `method`: `GET` (default), `POST`, `PUT`, `PATCH` or `DELETE`; `query` and `headers`: texts by name; `json`, a value
///   in which a text that is nothing but `{name}` becomes the argument itself, or `body`, a text. An entry that mentions an
///   absent value is left out; a list is an entry of `query` or of `json` alone. In a header `${NAME}` is a secret of
///   `environment`, sent only to the host of `url`. A status other than 200 to 299 is a failure with what the server said;
/// - `idempotent`: default true for reads, else false;
/// - `timeout_s`: seconds, above 0 and at most [`MOST_TIMEOUT_S`]; default: the caller's limit only, for a request 30;
/// - `result`: `text` (default), `lines`, `json`, `table`: a header line and rows, cut at tabs and runs of two or
///   more spaces, as a list of dicts of strings; or `regex`: each match of `pattern` (of the crate `regex`, `(?m)` for lines),
///   as a dict of its named groups, else as its first group, else as a whole;
/// - `cwd`: the folder to run in, from the manifest's folder; default: the host's own;
/// - `output_kib`: KiB of output or of an answer, from 1 to [`MOST_OUTPUT_KIB`]; default [`DEFAULT_OUTPUT_KIB`]. A read that writes
///   more is stopped, anything else runs to its end; both fail;
/// - `paging`: for `json` that comes page by page, a table with `argument`: the parameter that takes a page's token, `token`: the
///   field of a result that is the token of the next page, and `items`: the field that is the list of items, default the result
///   itself; a field that lies deeper is a path with dots. `async for` then goes through the items of all pages;
/// - `params`: by name a type, `str`, `int`, `float`, `bool` or `list` (of strings), or a table with `type`,
///   `description`, `default`, `required` (default: true without `default`), `choices`, and `allow_dash` (default
///   false: a value that an argument would begin with may not begin with `-`, unless it is a default or a choice).
///
/// An exit code other than 0 is a failure with what the command said.
#[derive(Debug)]
pub struct Manifest {
    name: String,
    description: String,
    operations: Vec<Operation>,
    environment: Vec<String>,
}

/// What a folder of manifests holds.
#[derive(Default)]
pub struct Loaded {
    /// The toolkits, in the order of their files' names.
    pub toolkits: Vec<Arc<dyn Toolkit>>,
    /// What is wrong with the other files.
    pub problems: Vec<Problem>,
}

/// Reads every `*.toml` in a folder, not in those below it. A broken file, or one that takes the name of an earlier
/// file's toolkit, is a problem of its own and leaves the others alone.
pub fn load(folder: &Path) -> Loaded {
    let mut loaded = Loaded::default();
    let paths = match manifests(folder) {
        Ok(paths) => paths,
        Err(error) => {
            loaded.problems.push(Problem::of_file(folder, format!("the folder cannot be read: {error}")));
            return loaded;
        }
    };
    let mut names = BTreeMap::new();
    for path in paths {
        let manifest = match Manifest::read(&path) {
            Ok(manifest) => manifest,
            Err(problem) => {
                loaded.problems.push(problem);
                continue;
            }
        };
        if let Some(first) = names.get(&manifest.name) {
            let first: &PathBuf = first;
            let mut problem = Problem::of_file(&path, format!("there is already a toolkit `{}`", manifest.name));
            problem.hint = Some(format!("`{}` declares it; give one of them another name", first.display()));
            loaded.problems.push(problem);
            continue;
        }
        names.insert(manifest.name.clone(), path);
        loaded.toolkits.push(Arc::new(manifest));
    }
    loaded
}

impl Manifest {
    /// Reads one file. Relative paths in it start at its folder.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let text = read_text(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let home = std::path::absolute(folder)
            .or_else(|_| std::env::current_dir())
            .map_err(|error| Problem::of_file(path, format!("its folder is unknown: {error}")))?;
        Self::parse(&text, home).map_err(|mistake| mistake.into_problem(path, &text))
    }

    /// Reads a manifest that a program has in itself; `name` stands in its problems where a file's would. Relative paths in it
    /// start at the root folder.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn of_text(name: &str, text: &str) -> Result<Self, Problem> {
        Self::parse(text, PathBuf::from("/")).map_err(|mistake| mistake.into_problem(Path::new(name), text))
    }

    fn parse(text: &str, home: PathBuf) -> Result<Self, Mistake> {
        let written: written::Toolkit = toml::from_str(text)?;
        let (place, name) = (written.name.span(), written.name.into_inner());
        if !is_python_name(&name) {
            let reason = format!("`{name}`, the name of the toolkit, is no Python name");
            return Err(Mistake::at(place, reason)
                .with_hint("use ASCII letters, digits and `_`, no digit first, and no Python keyword"));
        }
        if written.operations.is_empty() {
            return Err(
                Mistake::at(place, format!("`{name}` has no operation")).with_hint("begin one with `[[operation]]`")
            );
        }
        for variable in &written.environment {
            let text = variable.get_ref();
            if text.is_empty() || text.contains(['=', '\0']) {
                return Err(Mistake::at(variable.span(), format!("`{text}` is no name of an environment variable"))
                    .with_hint("name the variable only; its value comes from the host's environment"));
            }
        }
        let environment: Vec<String> = written.environment.into_iter().map(toml::Spanned::into_inner).collect();
        let mut operations: Vec<Operation> = Vec::new();
        for written in written.operations {
            let (place, name) = (written.name.span(), written.name.get_ref().clone());
            if operations.iter().any(|earlier| earlier.declared.name == name) {
                return Err(Mistake::at(place, format!("there is already an operation `{name}`")));
            }
            operations.push(Operation::new(written, &home, &environment)?);
        }
        Ok(Self { name, description: written.description, operations, environment })
    }

    fn variables(&self) -> Vec<(String, OsString)> {
        let names = ENVIRONMENT.into_iter().chain(self.environment.iter().map(String::as_str));
        let value = |name: &str| std::env::var_os(name).or_else(|| Some(named_value(name)?.into()));
        names.filter_map(|name| Some((name.to_owned(), value(name)?))).collect()
    }
}

#[async_trait]
impl Toolkit for Manifest {
    fn declaration(&self) -> Declaration {
        Declaration {
            name: self.name.clone(),
            description: self.description.clone(),
            operations: self.operations.iter().map(|operation| operation.declared.clone()).collect(),
        }
    }

    async fn call(&self, call: Call) -> Result<Value, ToolError> {
        let operation = self.operations.iter().find(|operation| operation.declared.name == call.operation);
        let Some(operation) = operation else {
            let reason = format!("{} has no operation `{}`", self.name, call.operation);
            return Err(ToolError::new(ErrorKind::UnknownOperation, reason));
        };
        operation.call(&call, self.variables()).await
    }

    async fn preview(&self, call: &Call) -> Result<Option<Preview>, ToolError> {
        let operation = self.operations.iter().find(|operation| operation.declared.name == call.operation);
        operation.map(|operation| operation.preview(call)).transpose()
    }
}

fn manifests(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn read_text(path: &Path) -> Result<String, Problem> {
    let unreadable = |error: std::io::Error| Problem::of_file(path, format!("the file cannot be read: {error}"));
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(MOST_MANIFEST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MOST_MANIFEST_BYTES {
        return Err(Problem::of_file(path, format!("the file has more than {MOST_MANIFEST_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| Problem::of_file(path, "the file is no UTF-8 text"))
}
