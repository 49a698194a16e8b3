//! The toolkit against a repository that the git program made.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::Command;

use fimble_git::Git;
use fimble_toolkit::{Call, ErrorKind, SessionContext, ToolError, Toolkit};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Runs git with no configuration but its own, at a fixed time: minute `minute` of 2026-01-10, noon, two hours east.
fn git(folder: &Path, minute: u32, arguments: &[&str]) -> String {
    let date = format!("2026-01-10T12:{minute:02}:00+02:00");
    let output = Command::new("git")
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .envs([("GIT_AUTHOR_DATE", &date), ("GIT_COMMITTER_DATE", &date)])
        .envs([("GIT_AUTHOR_NAME", "Ada"), ("GIT_AUTHOR_EMAIL", "ada@example.org")])
        .envs([("GIT_COMMITTER_NAME", "Ada"), ("GIT_COMMITTER_EMAIL", "ada@example.org")])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Three commits on `main`, a tag on the second, and a branch `topic` from the first with a commit by Grace.
fn repository() -> TempDir {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let write = |name: &str, text: &str| std::fs::write(path.join(name), text).unwrap();
    git(path, 0, &["init", "-q", "-b", "main"]);
    std::fs::create_dir(path.join("src")).unwrap();
    write("README", "one\ntwo\nthree\n");
    git(path, 0, &["add", "."]);
    git(path, 0, &["commit", "-qm", "Begin\n\nWith a body."]);
    write("src/main.rs", "fn main() {}\n");
    git(path, 1, &["add", "."]);
    git(path, 1, &["commit", "-qm", "Add the program"]);
    git(path, 1, &["tag", "-a", "v1", "-m", "First release"]);
    write("README", "one\nTWO\nthree\n");
    std::fs::write(path.join("data.bin"), [0, 1, 2, 0]).unwrap();
    git(path, 2, &["add", "."]);
    git(path, 2, &["commit", "-qm", "Shout"]);
    git(path, 3, &["checkout", "-q", "-b", "topic", "HEAD~2"]);
    write("topic", "x\n");
    git(path, 3, &["add", "."]);
    git(path, 3, &["commit", "-qm", "Topic", "--author", "Grace <grace@example.org>"]);
    git(path, 3, &["checkout", "-q", "main"]);
    folder
}

async fn call(toolkit: &Git, operation: &str, arguments: Value) -> Result<Value, ToolError> {
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

fn subjects(commits: &Value) -> Vec<&str> {
    commits.as_array().unwrap().iter().map(|commit| commit["subject"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn log_gives_commits_newest_first() {
    let folder = repository();
    let toolkit = Git::new(folder.path().to_owned());
    let commits = call(&toolkit, "log", json!({})).await.unwrap();
    assert_eq!(subjects(&commits), ["Shout", "Add the program", "Begin"]);
    let sha = git(folder.path(), 0, &["rev-parse", "HEAD~2"]);
    let expected = json!({
        "sha": sha,
        "short_sha": &sha[..7],
        "author": "Ada",
        "email": "ada@example.org",
        "date": "2026-01-10T12:00:00+02:00",
        "subject": "Begin",
        "message": "Begin\n\nWith a body.",
        "parents": [],
    });
    assert_eq!(commits[2], expected);
}

#[tokio::test]
async fn log_filters() {
    let folder = repository();
    let toolkit = Git::new(folder.path().to_owned());
    let readme = folder.path().canonicalize().unwrap().join("README");
    for (arguments, expected) in [
        (json!({"limit": 1}), vec!["Shout"]),
        (json!({"path": "README"}), vec!["Shout", "Begin"]),
        (json!({"path": readme}), vec!["Shout", "Begin"]),
        (json!({"path": "./src/"}), vec!["Add the program"]),
        (json!({"path": "."}), vec!["Shout", "Add the program", "Begin"]),
        (json!({"branch": "topic"}), vec!["Topic", "Begin"]),
        (json!({"branch": "v1"}), vec!["Add the program", "Begin"]),
        (json!({"branch": "topic", "author": "GRACE@"}), vec!["Topic"]),
        (json!({"author": "nobody"}), vec![]),
        (json!({"since": "2026-01-10T10:01:00Z"}), vec!["Shout", "Add the program"]),
        (json!({"until": "2026-01-10T10:01:00Z"}), vec!["Add the program", "Begin"]),
        (json!({"until": "2026-01-10", "limit": 1}), vec!["Shout"]),
        (json!({"until": "2026-01-09"}), vec![]),
    ] {
        let commits = call(&toolkit, "log", arguments.clone()).await.unwrap();
        assert_eq!(subjects(&commits), expected, "{arguments}");
    }
}

#[tokio::test]
async fn show_gives_files_and_counts() {
    let folder = repository();
    let toolkit = Git::new(folder.path().to_owned());
    let shown = call(&toolkit, "show", json!({})).await.unwrap();
    let file = |path: &str, status: &str, additions: u32, deletions: u32, binary: bool| {
        json!({"path": path, "old_path": null, "status": status, "additions": additions, "deletions": deletions,
            "binary": binary})
    };
    assert_eq!(
        (&shown["files"], &shown["files_changed"], &shown["additions"], &shown["deletions"], &shown["truncated"]),
        (
            &json!([file("README", "modified", 1, 1, false), file("data.bin", "added", 0, 0, true)]),
            &json!(2),
            &json!(1),
            &json!(1),
            &json!(false)
        )
    );
    let first = call(&toolkit, "show", json!({"revision": "HEAD~2"})).await.unwrap();
    assert_eq!(
        (&first["files"], &first["message"]),
        (&json!([file("README", "added", 3, 0, false)]), &json!("Begin\n\nWith a body."))
    );
}

#[tokio::test]
async fn diff_compares_revisions_and_the_working_tree() {
    let folder = repository();
    let toolkit = Git::new(folder.path().to_owned());
    let between = call(&toolkit, "diff", json!({"from_revision": "v1", "to_revision": "main"})).await.unwrap();
    let readme = json!({"path": "README", "old_path": null, "status": "modified", "additions": 1, "deletions": 1,
        "binary": false, "truncated": false,
        "patch": format!("diff --git a/README b/README\nindex {}..{} 100644\n--- a/README\n+++ b/README\n\
            @@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n",
            git(folder.path(), 0, &["rev-parse", "--short", "v1:README"]),
            git(folder.path(), 0, &["rev-parse", "--short", "main:README"]))});
    assert_eq!(between["files"][0], readme);
    assert_eq!(between["to_sha"], json!(git(folder.path(), 0, &["rev-parse", "main"])));
    let range = call(&toolkit, "diff", json!({"from_revision": "v1..main", "path": "README"})).await.unwrap();
    assert_eq!(range["files"], json!([readme]));
    // Three dots leave out what `main` did since `topic` left it.
    let left = call(&toolkit, "diff", json!({"from_revision": "main...topic"})).await.unwrap();
    let paths: Vec<&Value> = left["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, ["topic"]);

    std::fs::rename(folder.path().join("src/main.rs"), folder.path().join("src/[main].rs")).unwrap();
    git(folder.path(), 4, &["add", "."]);
    let staged = call(&toolkit, "diff", json!({})).await.unwrap();
    assert_eq!(
        (
            &staged["files"][0]["path"],
            &staged["files"][0]["old_path"],
            &staged["files"][0]["status"],
            &staged["to_sha"]
        ),
        (&json!("src/[main].rs"), &json!("src/main.rs"), &json!("renamed"), &Value::Null)
    );
    let one = call(&toolkit, "diff", json!({"path": "src/[main].rs"})).await.unwrap();
    assert_eq!((one["files"][0]["path"].clone(), one["files_changed"].clone()), (json!("src/[main].rs"), json!(1)));
}

#[tokio::test]
async fn long_patches_are_cut_and_say_so() {
    let folder = repository();
    let toolkit = Git::new(folder.path().to_owned());
    std::fs::write(folder.path().join("README"), "a line\n".repeat(100_000)).unwrap();
    let diff = call(&toolkit, "diff", json!({})).await.unwrap();
    let patch = diff["files"][0]["patch"].as_str().unwrap();
    assert!(patch.len() <= 64 * 1024 && patch.ends_with("+a line\n"), "{}", patch.len());
    assert_eq!(
        (&diff["truncated"], &diff["files"][0]["truncated"], &diff["additions"]),
        (&json!(true), &json!(true), &json!(100_000))
    );
}

#[tokio::test]
async fn blame_names_the_commit_of_each_line() {
    let folder = repository();
    let toolkit = Git::new(folder.path().to_owned());
    let blame = call(&toolkit, "blame", json!({"path": "README", "start_line": 2})).await.unwrap();
    let sha = git(folder.path(), 0, &["rev-parse", "HEAD"]);
    assert_eq!(
        blame["lines"][0],
        json!({"line": 2, "sha": sha, "short_sha": &sha[..7], "author": "Ada", "email": "ada@example.org",
            "date": "2026-01-10T12:02:00+02:00", "subject": "Shout", "text": "TWO"})
    );
    assert_eq!((&blame["lines"][1]["subject"], &blame["lines"][1]["line"]), (&json!("Begin"), &json!(3)));
    assert_eq!((&blame["total_lines"], &blame["truncated"]), (&json!(3), &json!(false)));
    let old = call(&toolkit, "blame", json!({"path": "README", "revision": "v1", "end_line": 2})).await.unwrap();
    let texts: Vec<&Value> = old["lines"].as_array().unwrap().iter().map(|line| &line["text"]).collect();
    assert_eq!(texts, ["one", "two"]);
}

#[tokio::test]
async fn branches_and_tags_name_their_commits() {
    let folder = repository();
    let clone = TempDir::new().unwrap();
    git(clone.path(), 4, &["clone", "-q", folder.path().to_str().unwrap(), "."]);
    git(clone.path(), 5, &["commit", "-q", "--allow-empty", "-m", "Ahead"]);
    let toolkit = Git::new(clone.path().to_owned());
    let branches = call(&toolkit, "branches", json!({})).await.unwrap();
    let names: Vec<&Value> = branches.as_array().unwrap().iter().map(|branch| &branch["name"]).collect();
    assert_eq!(names, ["main", "origin/topic", "origin/main"]);
    let sha = git(clone.path(), 0, &["rev-parse", "HEAD"]);
    assert_eq!(
        branches[0],
        json!({"name": "main", "current": true, "remote": false, "sha": sha, "short_sha": &sha[..7], "subject": "Ahead",
            "author": "Ada", "date": "2026-01-10T12:05:00+02:00", "upstream": "origin/main", "ahead": 1, "behind": 0})
    );
    let tags = call(&toolkit, "tags", json!({})).await.unwrap();
    let sha = git(clone.path(), 0, &["rev-parse", "v1^{commit}"]);
    assert_eq!(
        tags,
        json!([{"name": "v1", "sha": sha, "short_sha": &sha[..7], "subject": "Add the program",
            "date": "2026-01-10T12:01:00+02:00", "message": "First release"}])
    );
}

#[tokio::test]
async fn status_tells_staged_from_unstaged() {
    let folder = repository();
    let path = folder.path().canonicalize().unwrap();
    let toolkit = Git::new(path.clone());
    let clean = call(&toolkit, "status", json!({})).await.unwrap();
    let expected = json!({"repository": format!("{}/", path.display()), "branch": "main",
        "sha": git(&path, 0, &["rev-parse", "HEAD"]), "upstream": null, "ahead": null, "behind": null, "clean": true,
        "operation": "clean", "files": [], "truncated": false});
    assert_eq!(clean, expected);
    std::fs::write(path.join("new"), "x").unwrap();
    std::fs::write(path.join("README"), "staged").unwrap();
    git(&path, 4, &["add", "README"]);
    std::fs::write(path.join("README"), "and changed again").unwrap();
    git(&path, 4, &["mv", "src/main.rs", "src/lib.rs"]);
    let changed = call(&toolkit, "status", json!({})).await.unwrap();
    assert_eq!(
        changed["files"],
        json!([
            {"path": "README", "staged": "modified", "unstaged": "modified"},
            {"path": "new", "staged": null, "unstaged": "untracked"},
            {"path": "src/lib.rs", "staged": "renamed", "unstaged": null},
        ])
    );
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let folder = repository();
    let outside = TempDir::new().unwrap();
    let empty = TempDir::new().unwrap();
    git(empty.path(), 0, &["init", "-q", "-b", "main"]);
    std::os::unix::fs::symlink(outside.path(), folder.path().join("escape")).unwrap();
    let root = folder.path().canonicalize().unwrap();
    let toolkit = Git::new(root.clone());
    let roots = format!("leave `repository` out for the current one; others are within `{}`", root.display());
    let elsewhere = outside.path().canonicalize().unwrap();
    let denied = ToolError::new(
        ErrorKind::Forbidden,
        format!("`{}` is outside the folders that git_toolkit may read", elsewhere.display()),
    )
    .with_hint(&roots);
    for (operation, arguments, expected) in [
        (
            "show",
            json!({"revision": "abc"}),
            ToolError::not_found("there is no commit, branch or tag `abc`")
                .with_hint("log() lists the commits, branches() and tags() the names"),
        ),
        (
            "log",
            json!({"path": "nowhere"}),
            ToolError::not_found("no commit changed a file `nowhere`")
                .with_hint("the path is relative to the repository's top folder"),
        ),
        (
            "blame",
            json!({"path": "../x"}),
            ToolError::invalid_argument("`../x` is not in the repository")
                .with_hint("give it relative to the repository's top folder, e.g. `src/main.rs`"),
        ),
        (
            "blame",
            json!({"path": "README", "start_line": 9}),
            ToolError::invalid_argument("`README` has lines 1 to 3, not 9 on"),
        ),
        (
            "blame",
            json!({"path": "data.bin"}),
            ToolError::invalid_argument("`data.bin` is no text file of at most 8 MiB"),
        ),
        ("log", json!({"limit": 0}), ToolError::invalid_argument("`limit` is from 1 to 1000, not 0")),
        ("status", json!({"repository": elsewhere}), denied.clone()),
        ("status", json!({"repository": "escape"}), denied),
        (
            "status",
            json!({"repository": "nowhere"}),
            ToolError::not_found(format!("there is no folder `{}`", root.join("nowhere").display())).with_hint(&roots),
        ),
    ] {
        assert_eq!(call(&toolkit, operation, arguments.clone()).await, Err(expected), "{operation} {arguments}");
    }
    let none = call(&Git::new(elsewhere.clone()), "log", json!({})).await;
    let expected = ToolError::not_found(format!("`{}` is not in a git repository", elsewhere.display()));
    assert_eq!(none, Err(expected.with_hint("name the folder of one with `repository=`")));
    let unborn = call(&Git::new(empty.path().to_owned()), "log", json!({})).await;
    assert_eq!(unborn, Err(ToolError::not_found("the repository has no commits yet")));
    let status = call(&Git::new(empty.path().to_owned()), "status", json!({})).await.unwrap();
    assert_eq!((&status["branch"], &status["sha"]), (&json!("main"), &Value::Null));
}

#[tokio::test]
async fn a_folder_within_a_repository_is_that_repository() {
    let folder = repository();
    let toolkit = Git::new(folder.path().join("src"));
    assert_eq!(subjects(&call(&toolkit, "log", json!({"limit": 1})).await.unwrap()), ["Shout"]);
    let whole = json!({"limit": 1, "repository": folder.path()});
    assert_eq!(subjects(&call(&toolkit, "log", whole).await.unwrap()), ["Shout"]);
    let above = json!({"repository": folder.path().parent().unwrap()});
    assert_eq!(call(&toolkit, "log", above).await.unwrap_err().kind, ErrorKind::Forbidden);
}
