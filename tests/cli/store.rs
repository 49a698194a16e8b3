//! `fimble store`: stats, gc, export and import.

use super::branch::three_rounds;
use super::{Home, described, stderr, stdout};

#[test]
fn stats_say_how_much_there_is() {
    let (home, id) = three_rounds();
    assert_eq!(home.output(&["sessions", "fork", &id], "").status.code(), Some(0));
    let output = home.output(&["store", "stats"], "");
    let said = stdout(&output);
    let lines: Vec<(&str, &str)> =
        said.lines().map(|line| line.split_once(' ').unwrap()).map(|(name, rest)| (name, rest.trim())).collect();
    let find = |name: &str| lines.iter().find(|(found, _)| *found == name).unwrap().1;
    assert!(find("store").ends_with("fimble.db") && find("size").ends_with(" free"), "{said}");
    assert_eq!((find("schema"), find("sessions"), find("rounds")), ("2", "2, 1 of them forks", "6"));
    assert_eq!(find("variables"), "4, 8 versions");
    assert!(find("contents").ends_with(" bytes, 4 shared, 0 unused"), "{said}");
    assert!(find("oldest").starts_with("20") && find("newest").starts_with("20"), "{said}");
}

#[test]
fn gc_removes_what_is_old_and_nothing_else() {
    let (home, id) = three_rounds();
    let fork = stdout(&home.output(&["sessions", "fork", &id, "--at", "1"], "")).trim_end().to_owned();
    let nothing = home.output(&["store", "gc", "--older-than", "1"], "");
    let expected = "removed 0 sessions, 0 contents (0 bytes); the store is 0 bytes smaller\n";
    assert_eq!(described(&nothing), (Some(0), expected.to_owned(), String::new()));
    // Somebody else's is not removed, and neither is one that another process works in.
    let eve = home.fimble(&["run", "-"]).env("USER", "eve").stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(eve.status.code(), Some(0));
    let lock = home.path().join("data/fimble/fimble.locks").join(&fork);
    let held = std::fs::File::create(lock).unwrap();
    held.lock().unwrap();

    let dry = stdout(&home.output(&["store", "gc", "--older-than", "0", "--dry-run"], ""));
    let removed = |said: &str| said.lines().filter(|line| line.starts_with("would remove  ")).count();
    assert!(removed(&dry) == 2 && dry.ends_with("nothing refers to\n"), "{dry}");
    assert_eq!(
        removed(&stdout(&home.output(&["store", "gc", "--older-than", "0", "--all-users", "--dry-run"], ""))),
        3
    );
    assert_eq!(removed(&stdout(&home.output(&["store", "gc", "--dry-run"], ""))), 0);
    let output = home.output(&["store", "gc", "-c", "store_keep_s=1", "--older-than", "0"], "");
    let said = stdout(&output);
    assert!(!home.path().join("data/fimble/fimble.locks").join(&id).exists());
    assert!(said.starts_with(&format!("removed  {id}  20")) && said.contains("\nremoved 1 session, "), "{said}");
    assert!(stderr(&output).starts_with(&format!("kept, because another fimble is at work in it: {fork}")));
    assert_eq!(home.output(&["sessions", "vars", &fork], "").status.code(), Some(0));
    drop(held);
    let stats = stdout(&home.output(&["store", "stats"], ""));
    assert!(stats.contains("\nsessions   2, 1 of them forks\n") && stats.contains(", 0 bytes of it free"), "{stats}");
}

#[test]
fn a_file_keeps_sessions_as_long_as_the_setting_says_when_it_is_swept() {
    let (home, id) = three_rounds();
    let file = stdout(&home.output(&["store", "export"], ""));
    let mut lines: Vec<serde_json::Value> = file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines[1]["session"]["updated_at"] = "2024-02-29T12:00:00Z".into();
    let old: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(home.output(&["store", "import", "-", "--replace"], &old).status.code(), Some(0));
    // A hundred years, and a day.
    let long = home.output(&["store", "gc", "-c", "store_keep_s=3153600000"], "");
    assert!(stdout(&long).starts_with("removed 0 sessions"), "{}", stdout(&long));
    let swept = stdout(&home.output(&["store", "gc", "-c", "store_keep_s=86400"], ""));
    assert!(swept.starts_with(&format!("removed  {id}  2024-02-29 12:00  run -\nremoved 1 session, ")), "{swept}");
}

#[test]
fn what_is_exported_is_taken_in_by_another_store() {
    let (home, id) = three_rounds();
    let fork = stdout(&home.output(&["sessions", "fork", &id, "--at", "2"], "")).trim_end().to_owned();
    let output = home.output(&["store", "export"], "");
    let (code, file, said) = described(&output);
    assert_eq!((code, said.as_str()), (Some(0), "exported 2 sessions\n"));
    let written = home.output(&["store", "export", &fork, &id, "--to", "a.jsonl.zst"], "");
    assert_eq!(described(&written), (Some(0), String::new(), "exported 2 sessions\n".to_owned()));
    let names: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("partial")), "{names:?}");
    let unpacked = zstd::decode_all(std::fs::File::open(home.path().join("a.jsonl.zst")).unwrap()).unwrap();
    assert_eq!(String::from_utf8(unpacked).unwrap(), file);

    let other = ["-c", "store=other.db"];
    let taken = home.output(&[&["store", "import", "a.jsonl.zst"], &other[..]].concat(), "");
    assert_eq!(described(&taken), (Some(0), String::new(), "imported 2 sessions\n".to_owned()));
    assert_eq!(stdout(&home.output(&[&["store", "export"], &other[..]].concat(), "")), file);
    let run = home.output(&[&["run", "-", "--session", &id], &other[..]].concat(), "print(x, z)\n");
    assert_eq!(described(&run), (Some(0), "2 3\n".to_owned(), String::new()));

    let again = home.output(&[&["store", "import", "-"], &other[..]].concat(), &file);
    let expected = format!(
        "imported 0 sessions\nerror: 2 sessions of the file are there already: {id}, {fork}\n\n\
         hint: `--replace` puts those of the file in their place\n"
    );
    assert_eq!(described(&again), (Some(2), String::new(), expected));
    let replaced = home.output(&[&["store", "import", "-", "--replace"], &other[..]].concat(), &file);
    assert_eq!(described(&replaced), (Some(0), String::new(), "imported 2 sessions\n".to_owned()));
    assert_eq!(stdout(&home.output(&[&["store", "export"], &other[..]].concat(), "")), file);

    let there = home.output(&["store", "export", "--to", "a.jsonl.zst"], "");
    let expected = "error: `a.jsonl.zst` is there already\n\nhint: name a file that is not there yet\n";
    assert_eq!(described(&there), (Some(2), String::new(), expected.to_owned()));
    let unknown = home.output(&["store", "export", "nope", "--to", "b.jsonl"], "");
    assert!(unknown.status.code() == Some(2) && stderr(&unknown).contains("there is no session `nope`"));
    assert!(!home.path().join("b.jsonl").exists() && !home.path().join("b.jsonl.partial").exists());
    let damaged =
        home.output(&["store", "import", "-", "-c", "store=third.db"], &file.replace("\"event\"", "\"Event\""));
    let said = stderr(&damaged);
    assert!(damaged.status.code() == Some(2) && said.starts_with("error: line "), "{said}");
    assert!(said.contains("hint: 0 sessions before it are stored"), "{said}");
    let missing = home.output(&["store", "import", "nothing.jsonl"], "");
    assert!(stderr(&missing).starts_with("error: cannot read `nothing.jsonl`: "), "{}", stderr(&missing));
}

#[test]
fn nobody_else_s_sessions_are_exported_unless_asked_for() {
    let home = Home::new();
    let eve = home.fimble(&["run", "-"]).env("USER", "eve").stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(eve.status.code(), Some(0));
    assert_eq!(stderr(&home.output(&["store", "export"], "")), "exported 0 sessions\n");
    let all = home.output(&["store", "export", "--all-users"], "");
    assert_eq!(stderr(&all), "exported 1 session\n");
    let session: serde_json::Value = serde_json::from_str(stdout(&all).lines().nth(1).unwrap()).unwrap();
    let id = session["session"]["id"].as_str().unwrap();
    let refused = home.output(&["store", "export", id], "");
    assert!(stderr(&refused).contains("there is no session"), "{}", stderr(&refused));
}

#[test]
fn a_reader_that_went_away_is_no_failure_of_an_export() {
    let (home, _) = three_rounds();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = home.fimble(&["store", "export"]).stdout(writer).output().unwrap();
    assert_eq!(described(&output), (Some(0), String::new(), String::new()));
}
