//! A file of sessions that somebody else may have written: what is wrong with it is told by its line, and nothing of the session
//! that the line belongs to is stored.

use std::io::BufReader;
use std::sync::LazyLock;

use fimble::store::Store;
use fimble::store::sqlite::Sqlite;
use fimble::store::transfer::{Imported, Limits, TransferError, import};
use fimble::store::upkeep::{Upkeep, read};
use proptest::prelude::*;

use crate::upkeep::{file_of, fill, small, take_in};

static GOOD: LazyLock<String> =
    LazyLock::new(|| std::thread::spawn(|| runtime().block_on(good_file())).join().unwrap());

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

async fn good_file() -> String {
    let store = Sqlite::in_memory().unwrap();
    fill(&store).await;
    let ids: Vec<String> = store.all_sessions().await.unwrap().into_iter().map(|session| session.id).collect();
    file_of(&store, &ids).await
}

/// Takes in a file that cannot be whole; the line and the message, and how many sessions are stored.
async fn refused(file: &[u8], limits: Limits) -> (u64, String, usize) {
    let store = Sqlite::in_memory().unwrap();
    let refused = import(&store, &mut BufReader::new(file), false, limits).await;
    let Err(TransferError::Line { number, message, before }) = refused else { panic!("{refused:?}") };
    let stored = store.all_sessions().await.unwrap();
    assert_eq!(before, Imported { sessions: stored.len() as u64, refused: vec![] });
    for session in &stored {
        let mut whole = read(&store, &session.id).await.unwrap().unwrap();
        for variable in whole.versions.iter().filter_map(|version| version.variable.as_ref()) {
            let content = store.content(&session.id, &variable.hash).await.unwrap().unwrap();
            whole.contents.insert(variable.hash.clone(), content.into());
        }
        whole.check().unwrap();
    }
    (number, message, stored.len())
}

#[tokio::test]
async fn a_damaged_line_is_told_by_its_number() {
    let file = GOOD.as_str();
    let lines: Vec<&str> = file.lines().collect();
    let begins = |what: &str| lines.iter().position(|line| line.starts_with(what)).unwrap();
    let without = |at: usize| [&lines[..at], &lines[at + 1..]].concat().join("\n");
    let with = |at: usize, line: &str| [&lines[..at], &[line], &lines[at + 1..]].concat().join("\n");
    let (second, end) = (begins("{\"session\":{\"id\":\"s\""), begins("{\"end_of_session\":{\"id\":\"s\""));
    let content = begins("{\"content\"");
    let damages = [
        (String::new(), 1, "it is no file of sessions", 0),
        ("{}\n".into(), 1, "it is no file of sessions", 0),
        ("\u{1b}[2J\n".into(), 1, "it is no file of sessions", 0),
        (lines[1..].join("\n"), 1, "it is no file of sessions", 0),
        (lines[0].into(), 2, "the file ends before its last line", 0),
        (lines[..end].join("\n"), end + 1, "the file ends before its last line", 1),
        (lines[..lines.len() - 1].join("\n"), lines.len(), "the file ends before its last line", 4),
        (without(second), second + 1, "a session must begin here", 1),
        (without(second + 1), end, "the session had another id or count of lines", 1),
        (without(content), begins("{\"version\""), "", 1),
        (with(second + 1, "{\"segment\":"), second + 2, "it is damaged", 1),
        (with(second + 1, "{\"segments\":{}}"), second + 2, "it is damaged", 1),
        (with(second + 1, lines[second]), second + 2, "the session has not ended", 1),
        (with(second + 1, lines[begins("{\"event\"")]), end + 1, "the session counts 2 segments", 1),
        (with(content, &lines[content].replace("text\":\"", "text\":\"x")), content + 1, "the content is not", 1),
        (with(lines.len() - 1, "{\"end\":{\"sessions\":9}}"), lines.len(), "the file had another count", 4),
        (format!("{file}{{}}\n"), lines.len() + 1, "something follows the end", 4),
    ];
    for (damaged, number, message, stored) in damages {
        let found = refused(damaged.as_bytes(), Limits::default()).await;
        let is_so =
            found.1.starts_with(message) && found.2 == stored && (message.is_empty() || found.0 == number as u64);
        assert!(is_so, "{number} {message} {stored}: {found:?}");
    }
}

#[tokio::test]
async fn a_newer_file_is_refused_whatever_else_it_says() {
    let store = Sqlite::in_memory().unwrap();
    let newer = "{\"fimble\":{\"version\":2,\"made\":{\"by\":[]}}}\n{\"sessions\":[]}\n";
    let refused = import(&store, &mut newer.as_bytes(), false, Limits::default()).await;
    assert!(matches!(refused, Err(TransferError::TooNew { found: 2 })), "{refused:?}");
    assert_eq!(refused.unwrap_err().to_string(), "the file has version 2, this Fimble reads up to 1");
}

#[tokio::test]
async fn lines_and_families_are_bounded() {
    let file = GOOD.as_str();
    let longest = file.lines().map(str::len).max().unwrap();
    let store = Sqlite::in_memory().unwrap();
    let fits = Limits { line: longest, ..Limits::default() };
    assert_eq!(import(&store, &mut file.as_bytes(), false, fits).await.unwrap().sessions, 4);
    let line = refused(file.as_bytes(), Limits { line: longest - 1, ..Limits::default() }).await;
    assert_eq!(line.1, format!("it is longer than {} bytes", longest - 1));
    let endless = [file.lines().next().unwrap().as_bytes(), b"\n", &vec![b'['; 100_000]].concat();
    let line = refused(&endless, Limits { line: 10_000, ..Limits::default() }).await;
    assert_eq!((line.0, line.1.as_str()), (2, "it is longer than 10000 bytes"));
    let family = refused(file.as_bytes(), Limits { family: 2_000, ..Limits::default() }).await;
    assert_eq!((family.1.as_str(), family.2), ("the session and its forks have more than 2000 bytes", 1));
    let deep = [file.lines().next().unwrap(), "\n", &"{\"session\":".repeat(50_000)].concat();
    assert!(refused(deep.as_bytes(), Limits::default()).await.1.starts_with("it is damaged"));

    store.put_session(small(), true).await.unwrap();
    let mut out = Vec::new();
    let tight = Limits { line: 100, ..Limits::default() };
    let error = fimble::store::transfer::export(&store, &["s".into()], &mut out, tight).await.unwrap_err();
    assert!(error.to_string().contains("is over the limit: 100"), "{error}");
}

#[tokio::test]
async fn a_fork_comes_without_its_source() {
    let store = Sqlite::in_memory().unwrap();
    fill(&store).await;
    let file = file_of(&store, &["s.0000000f".into()]).await;
    let other = Sqlite::in_memory().unwrap();
    assert_eq!(take_in(&other, &file, false).await.sessions, 1);
    assert_eq!(file_of(&other, &["s.0000000f".into()]).await, file);
    assert_eq!(other.variables("s.0000000f").await.unwrap(), store.variables("s.0000000f").await.unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_of_a_stranger_store_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..2_000), header in any::<bool>()) {
        runtime().block_on(async {
            let mut file = if header { b"{\"fimble\":{\"version\":1}}\n".to_vec() } else { Vec::new() };
            file.extend(bytes);
            assert_eq!(refused(&file, Limits::default()).await.2, 0);
        });
    }

    #[test]
    fn a_file_that_was_changed_stores_whole_sessions_only(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..4)
    ) {
        runtime().block_on(async {
            let mut file = GOOD.clone().into_bytes();
            for (at, byte, kind) in changes {
                let at = at.index(file.len());
                match kind {
                    0 => file[at] = byte,
                    1 => drop(file.remove(at)),
                    _ => file.insert(at, byte),
                }
            }
            let store = Sqlite::in_memory().unwrap();
            match import(&store, &mut file.as_slice(), false, Limits::default()).await {
                // What only says something else is whole.
                Ok(imported) => assert_eq!(imported.sessions, 4),
                Err(TransferError::Line { .. }) => drop(refused(&file, Limits::default()).await),
                Err(TransferError::TooNew { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        });
    }
}
