//! The toolkit against real files, and links that try to leave.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use fimble_files::{Files, Limits};
use fimble_toolkit::{Call, ErrorKind, SessionContext, ToolError, Toolkit};
use serde_json::{Value, json};
use tempfile::TempDir;

/// `README` (3 lines), `src/main.rs`, `src/deep/lib.rs`, `.hidden`, `target/out.rs` (ignored), `data.bin`.
fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("src/deep")).unwrap();
    fs::create_dir(root.join("target")).unwrap();
    for (name, text) in [
        ("README", "one\ntwo\nthree\n"),
        ("src/main.rs", "fn main() {}\n// TODO: more\n"),
        ("src/deep/lib.rs", "// todo\n"),
        (".hidden", "TODO\n"),
        (".gitignore", "target/\n"),
        ("target/out.rs", "TODO\n"),
        ("data.bin", "TODO\0\n"),
    ] {
        fs::write(root.join(name), text).unwrap();
    }
    (folder, root)
}

async fn call_with(toolkit: &Files, operation: &str, arguments: Value) -> Result<Value, ToolError> {
    toolkit
        .call(Call {
            operation: operation.into(),
            arguments: arguments.as_object().cloned().unwrap(),
            key: String::new(),
            context: SessionContext::default(),
            cancellation: tokio_util::sync::CancellationToken::new(),
        })
        .await
}

async fn call(root: &Path, operation: &str, arguments: Value) -> Result<Value, ToolError> {
    call_with(&Files::new(vec![root.to_owned()], Limits::default()), operation, arguments).await
}

fn paths(entries: &Value) -> Vec<&str> {
    entries.as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn list_gives_what_is_there() {
    let (_folder, root) = folder();
    for (arguments, expected) in [
        (json!({}), vec![".gitignore", ".hidden", "README", "data.bin", "src", "target"]),
        (json!({"path": "src"}), vec!["src/deep", "src/main.rs"]),
        (json!({"path": root.join("src")}), vec!["src/deep", "src/main.rs"]),
        (json!({"pattern": "*.rs", "recursive": true}), vec!["src/deep/lib.rs", "src/main.rs"]),
        (json!({"pattern": "src/*.rs", "recursive": true}), vec!["src/main.rs"]),
        (json!({"pattern": "**/*.rs", "recursive": true}), vec!["src/deep/lib.rs", "src/main.rs"]),
        (json!({"recursive": true}), vec!["README", "data.bin", "src", "src/deep", "src/deep/lib.rs", "src/main.rs"]),
    ] {
        let listing = call(&root, "list", arguments.clone()).await.unwrap();
        assert_eq!((paths(&listing["entries"]), &listing["truncated"]), (expected, &json!(false)), "{arguments}");
    }
    let cut = call(&root, "list", json!({"limit": 1})).await.unwrap();
    assert_eq!((paths(&cut["entries"]), &cut["truncated"]), (vec![".gitignore"], &json!(true)));
}

#[tokio::test]
async fn entries_tell_kind_size_and_time() {
    let (_folder, root) = folder();
    symlink("/etc/passwd", root.join("src/link")).unwrap();
    let file = fs::File::options().write(true).open(root.join("src/main.rs")).unwrap();
    let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    file.set_modified(time).unwrap();
    fs::set_permissions(root.join("src/main.rs"), fs::Permissions::from_mode(0o640)).unwrap();
    let listing = call(&root, "list", json!({"path": "src", "pattern": "main.rs"})).await.unwrap();
    assert_eq!(
        listing["entries"],
        json!([{"path": "src/main.rs", "name": "main.rs", "kind": "file", "size": 27,
            "modified": "2023-11-14T22:13:20Z"}])
    );
    let link = call(&root, "list", json!({"path": "src", "pattern": "link"})).await.unwrap();
    assert_eq!((&link["entries"][0]["kind"], &link["entries"][0]["size"]), (&json!("symlink"), &Value::Null));
    let mut stat = call(&root, "stat", json!({"path": "src/../src/main.rs"})).await.unwrap();
    let fields = stat.as_object_mut().unwrap();
    assert!(fields.remove("uid").is_some_and(|uid| uid.is_u64()) && fields.remove("gid").is_some());
    assert_eq!(
        stat,
        json!({"path": "src/main.rs", "kind": "file", "size": 27, "modified": "2023-11-14T22:13:20Z", "mode": "640"})
    );
}

#[tokio::test]
async fn read_gives_lines() {
    let (_folder, root) = folder();
    let text = |text: &str, start: u32, end: u32| {
        json!({"path": "README", "text": text, "start_line": start, "end_line": end, "total_lines": 3, "size": 14,
            "truncated": false})
    };
    for (operation, arguments, expected) in [
        ("read", json!({"path": "README"}), text("one\ntwo\nthree\n", 1, 3)),
        ("read", json!({"path": "README", "start_line": 2, "end_line": 2}), text("two\n", 2, 2)),
        ("read", json!({"path": "README", "start_line": 2, "end_line": 99}), text("two\nthree\n", 2, 3)),
        ("tail", json!({"path": "README", "lines": 2}), text("two\nthree\n", 2, 3)),
        ("tail", json!({"path": "README"}), text("one\ntwo\nthree\n", 1, 3)),
        ("tail", json!({"path": "README", "lines": 0}), text("", 4, 3)),
    ] {
        assert_eq!(call(&root, operation, arguments.clone()).await.unwrap(), expected, "{operation} {arguments}");
    }
    fs::write(root.join("empty"), "").unwrap();
    let empty = call(&root, "read", json!({"path": "empty"})).await.unwrap();
    assert_eq!((&empty["text"], &empty["end_line"], &empty["total_lines"]), (&json!(""), &json!(0), &json!(0)));
}

#[tokio::test]
async fn long_files_are_cut_and_say_so() {
    let (_folder, root) = folder();
    fs::write(root.join("log"), (1..=1_000).map(|number| format!("line {number:04}\n")).collect::<String>()).unwrap();
    let small = Files::new(vec![root.clone()], Limits { text_bytes: 100, ..Limits::default() });
    let text: String = (1..=10).map(|number| format!("line {number:04}\n")).collect();
    assert_eq!(
        call_with(&small, "read", json!({"path": "log"})).await.unwrap(),
        json!({"path": "log", "text": text, "start_line": 1, "end_line": 10, "total_lines": 1_000, "size": 10_000,
            "truncated": true})
    );
    let text: String = (992..=1_000).map(|number| format!("line {number:04}\n")).collect();
    assert_eq!(
        call_with(&small, "tail", json!({"path": "log", "lines": 50})).await.unwrap(),
        json!({"path": "log", "text": text, "start_line": 992, "end_line": 1_000, "total_lines": 1_000, "size": 10_000,
            "truncated": true})
    );
    let scanning = Files::new(vec![root.clone()], Limits { scan_bytes: 50, ..Limits::default() });
    let part = call_with(&scanning, "read", json!({"path": "log", "start_line": 4})).await.unwrap();
    assert_eq!(
        (&part["text"], &part["total_lines"], &part["truncated"]),
        (&json!("line 0004\nline 0005\n"), &Value::Null, &json!(true))
    );
}

#[tokio::test]
async fn search_finds_lines_but_not_what_is_ignored() {
    let (_folder, root) = folder();
    let todo = json!({"path": "src/main.rs", "line": 2, "text": "// TODO: more"});
    let deep = json!({"path": "src/deep/lib.rs", "line": 1, "text": "// todo"});
    for (arguments, matches, truncated) in [
        (json!({"pattern": "TODO"}), json!([todo]), false),
        (json!({"pattern": "todo", "ignore_case": true}), json!([deep, todo]), false),
        (json!({"pattern": "todo", "ignore_case": true, "limit": 1}), json!([deep]), true),
        (json!({"pattern": r"^// \w+$", "glob": "*.rs"}), json!([deep]), false),
        (json!({"pattern": "TODO", "glob": "*.py"}), json!([]), false),
        (json!({"pattern": "TODO", "path": "src/main.rs"}), json!([todo]), false),
        (json!({"pattern": "TODO", "path": "src/main.rs", "glob": "*.rs"}), json!([todo]), false),
    ] {
        let found = call(&root, "search", arguments.clone()).await.unwrap();
        assert_eq!((&found["matches"], &found["truncated"]), (&matches, &json!(truncated)), "{arguments}");
    }
}

#[tokio::test]
async fn nothing_leads_outside() {
    let (_folder, root) = folder();
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("secret"), "TODO secret\n").unwrap();
    symlink(outside.path().join("secret"), root.join("link")).unwrap();
    symlink(outside.path(), root.join("folder")).unwrap();
    symlink("README", root.join("inner")).unwrap();
    let absolute = outside.path().join("secret").display().to_string();
    let climbing = format!("src/../../{}/secret", outside.path().file_name().unwrap().display());
    let missing = outside.path().join("missing").display().to_string();
    for path in ["link", "folder/secret", "folder/missing", "..", "/", "/etc/passwd", &absolute, &climbing, &missing] {
        let expected = ToolError::new(
            ErrorKind::Forbidden,
            format!("`{path}` is outside the folders that files_toolkit may read"),
        )
        .with_hint(format!("paths are relative to `{}`", root.display()));
        for operation in ["read", "tail", "list", "stat"] {
            let result = call(&root, operation, json!({"path": path})).await;
            assert_eq!(result, Err(expected.clone()), "{operation} {path}");
        }
        let result = call(&root, "search", json!({"pattern": "x", "path": path})).await;
        assert_eq!(result, Err(expected), "search {path}");
    }
    assert_eq!(call(&root, "read", json!({"path": "inner"})).await.unwrap()["path"], json!("README"));
    let found = call(&root, "search", json!({"pattern": "secret"})).await.unwrap();
    assert_eq!(found["matches"], json!([]));
    let listed = call(&root, "list", json!({"recursive": true, "pattern": "**/secret"})).await.unwrap();
    assert_eq!(listed["entries"], json!([]));
}

#[tokio::test]
async fn a_second_root_is_named_by_its_full_path() {
    let (_folder, root) = folder();
    let (_other, second) = folder();
    let toolkit = Files::new(vec![root, second.clone(), PathBuf::from("/nowhere")], Limits::default());
    let listing = call_with(&toolkit, "list", json!({"path": second.join("src")})).await.unwrap();
    assert_eq!(
        paths(&listing["entries"]),
        [second.join("src/deep").to_str().unwrap(), second.join("src/main.rs").to_str().unwrap()]
    );
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let (_folder, root) = folder();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
    for (operation, arguments, expected) in [
        (
            "read",
            json!({"path": "missing"}),
            ToolError::not_found("there is no file or folder `missing`")
                .with_hint(format!("paths are relative to `{}`", root.display())),
        ),
        (
            "read",
            json!({"path": "data.bin"}),
            ToolError::invalid_argument("`data.bin` is a binary file of 6 bytes, not text")
                .with_hint("stat() tells its size and times"),
        ),
        (
            "read",
            json!({"path": "src"}),
            ToolError::invalid_argument("`src` is a folder").with_hint("list() gives what is in it"),
        ),
        (
            "read",
            json!({"path": "pipe"}),
            ToolError::invalid_argument("`pipe` is a device, a pipe or a socket, not a file"),
        ),
        (
            "read",
            json!({"path": "README", "start_line": 5}),
            ToolError::invalid_argument("`README` has 3 lines; there is no line 5"),
        ),
        (
            "read",
            json!({"path": "README", "start_line": 3, "end_line": 1}),
            ToolError::invalid_argument("lines are counted from 1, the first before the last: 3 to 1"),
        ),
        (
            "list",
            json!({"path": "README"}),
            ToolError::invalid_argument("`README` is a file").with_hint("read() gives its text"),
        ),
        ("list", json!({"limit": 0}), ToolError::invalid_argument("`limit` is from 1 to 5000, not 0")),
        (
            "list",
            json!({"pattern": "[x"}),
            ToolError::invalid_argument("`[x` is no glob: unclosed character class; missing ']'")
                .with_hint("write e.g. `*.py` or `src/**/*.py`"),
        ),
        (
            "search",
            json!({"pattern": "main("}),
            ToolError::invalid_argument("`main(` is no regular expression: unclosed group").with_hint(
                "escape `.`, `(`, `[`, `{`, `*`, `+`, `?` and `\\` with a backslash where you mean the letter",
            ),
        ),
    ] {
        assert_eq!(call(&root, operation, arguments.clone()).await, Err(expected), "{operation} {arguments}");
    }
    let closed = Files::new(vec![PathBuf::from("/nowhere")], Limits::default());
    let expected = Err(ToolError::unavailable("no folder is open to files_toolkit"));
    assert_eq!(call_with(&closed, "list", json!({})).await, expected);
}
