//! What reads bytes from a child, opened for the targets in `fuzz/` and no part of the crate's interface. Each function
//! asserts what the rest of the host relies on.

mod judge;
mod rounds;

pub use rounds::round;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::done::{self, Done};
use super::message::{self, Cancelled, Printed, StatementDone};
use super::wire::{Frame, Incoming, Wire};
use super::{Limits, Run, frame};

/// Bytes that a frame may have here.
const FRAME_BYTES: usize = 4096;

/// Reads bytes as a child's frames until its end, and answers how many there were.
pub fn wire(bytes: &[u8]) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let Ok(runtime) = runtime else { return 0 };
    runtime.block_on(async {
        let Ok((ours, mut theirs)) = UnixStream::pair() else { return 0 };
        let mut wire = Wire::new(ours, FRAME_BYTES);
        let write = async move {
            // Small pieces, so that frames arrive in parts.
            for piece in bytes.chunks(97) {
                if theirs.write_all(piece).await.is_err() {
                    return;
                }
            }
        };
        let read = async {
            let (mut taken, mut count) = (0, 0);
            while let Ok(Incoming::Frame(Frame { kind, body })) = wire.next(true).await {
                let start = taken + 5;
                assert!(body.len() <= FRAME_BYTES, "{} bytes", body.len());
                assert_eq!((bytes.get(start - 1), bytes.get(start..start + body.len())), (Some(&kind), Some(&*body)));
                taken = start + body.len();
                count += 1;
            }
            drop(wire);
            count
        };
        tokio::join!(write, read).1
    })
}

/// Reads the body of a frame of that kind.
pub fn message(kind: u8, body: &[u8]) {
    match kind {
        frame::PRINT => drop(message::read::<Printed>(body)),
        frame::STATEMENT => drop(message::read::<StatementDone>(body)),
        frame::CANCEL => drop(message::read::<Cancelled>(body)),
        frame::DONE => done(body),
        _ => {
            let Ok(call) = message::read_call(body) else { return };
            let (_, answer) = message::write_answer(call.id, &Ok(call.positional.into()), FRAME_BYTES);
            assert!(answer.len() <= FRAME_BYTES, "{} bytes", answer.len());
        }
    }
}

fn run() -> Run {
    Run {
        source: "x = 1\ny = 2\nx + y\n".to_owned(),
        file_name: "<program>".to_owned(),
        variables: Vec::new(),
        proxies: vec!["demo".to_owned()],
        paging: Vec::new(),
        limits: Limits { variable_kib: 1, variables_kib: 2, ..Limits::default() },
        repeat: None,
    }
}

/// Reads a last word.
pub fn done(body: &[u8]) {
    let run = run();
    let Ok(done) = message::read::<Done>(body).and_then(|done| done::check(done, &run)) else { return };
    let (kept, surplus) = done::within_limits(done.written, &run.limits);
    assert!(kept.iter().map(|one| one.content.len()).sum::<usize>() <= 2048);
    for variable in &kept {
        assert!(variable.content.len() <= 1024 && variable.name != "demo");
        for text in [&variable.name, &variable.type_name, &variable.preview] {
            assert!(!text.chars().any(char::is_control) && text.chars().count() <= 400, "{text:?}");
        }
        assert!(variable.name.chars().all(unicode_ident::is_xid_continue) && !variable.name.is_empty());
    }
    for (name, reason) in surplus.iter().chain(&done.not_carried) {
        assert!(!name.is_empty() && reason.lines().count() <= 1, "{name:?} {reason:?}");
    }
    assert!(done.statements_done <= done.statements);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fimble_toolkit::{ErrorKind, ToolError};
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::interpreter::{Captured, HostCall};
    use crate::record::{Readings, Site, VariableKind};

    /// Any JSON value.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(|number| serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..8)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// How many values there are, and names of fields; and how many lists and objects that are empty.
    fn count(value: &Value) -> (usize, usize) {
        let parts: Vec<(usize, usize)> = match value {
            Value::Array(items) => items.iter().map(count).collect(),
            Value::Object(fields) => fields.values().map(count).map(|(values, empty)| (values + 1, empty)).collect(),
            _ => return (1, 0),
        };
        let (values, empty) = parts.iter().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        (values + 1, empty + usize::from(parts.is_empty()))
    }

    fn captured() -> impl Strategy<Value = Captured> {
        let kind = prop_oneof![Just(VariableKind::Value), Just(VariableKind::Definition), Just(VariableKind::Import)];
        let texts = (any::<String>(), "[a-z ]{0,200}", "[^\\p{C}\\p{Z}]{0,200}");
        (r"[\p{L}_][\p{L}_]{0,20}", kind, texts, any::<u32>(), prop::collection::vec("[a-z]{1,9}", 0..4))
            .prop_filter_map(
                "names are of this alphabet as Python knows it",
                |(name, kind, (content, type_name, preview), line, references)| {
                    let known = name.chars().all(unicode_ident::is_xid_continue)
                        && name.chars().next().is_some_and(|first| first == '_' || unicode_ident::is_xid_start(first));
                    let type_name = type_name.chars().take(80).collect();
                    known.then_some(Captured { name, kind, content, type_name, preview, line, references })
                },
            )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn frames_arrive_as_they_were_sent(
            frames in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..600)), 0..12),
            cut in 0_usize..5,
        ) {
            let mut bytes = Vec::new();
            for (kind, body) in &frames {
                bytes.extend((body.len() as u32).to_le_bytes());
                bytes.push(*kind);
                bytes.extend(body);
            }
            prop_assert_eq!(wire(&bytes), frames.len());
            // Without its end, the last one is none.
            bytes.truncate(bytes.len().saturating_sub(cut));
            prop_assert_eq!(wire(&bytes), if cut > 0 { frames.len().saturating_sub(1) } else { frames.len() });
        }

        #[test]
        fn calls_are_read_as_they_were_written(
            positional in prop::collection::vec(value(), 0..4),
            keyword in prop::collection::vec((any::<String>(), value()), 0..4),
            (id, line, column, ordinal) in any::<(u64, u32, u32, u32)>(),
            (target, method) in any::<(String, String)>(),
            (wall, steady, counter) in any::<(Vec<i64>, Vec<i64>, Vec<i64>)>(),
        ) {
            let readings = Readings { wall, steady, counter };
            let keyword: Map<String, Value> = keyword.into_iter().collect();
            let written = json!({
                "id": id, "target": target, "method": method, "positional": positional, "keyword": keyword,
                "line": line, "column": column, "ordinal": ordinal, "readings": readings,
            });
            let body = serde_json::to_vec(&written).unwrap();
            let site = Site { line, column };
            let call = HostCall { id, target, method, positional, keyword, site, ordinal, readings };
            prop_assert_eq!(message::read_call(&body), Ok(call));
        }

        #[test]
        fn answers_say_what_was_answered_and_fit(
            id in any::<u64>(), result in value(), message in any::<String>(), hint in any::<Option<String>>(), cap in 400_usize..5_000,
        ) {
            let read = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap();
            let (kind, body) = message::write_answer(id, &Ok(result.clone()), cap);
            if kind == frame::RETURN {
                prop_assert_eq!(read(&body), json!({ "id": id, "result": result }));
                prop_assert!(body.len() <= cap);
            } else {
                prop_assert_eq!((kind, &read(&body)["kind"]), (frame::ERROR, &json!("failed")));
                prop_assert!(result.to_string().len() + 40 > cap);
            }
            let error = ToolError { hint, ..ToolError::new(ErrorKind::NotFound, message) };
            let (kind, body) = message::write_answer(id, &Err(error.clone()), cap);
            prop_assert!(kind == frame::ERROR && body.len() <= cap && read(&body)["id"] == id);
            let (kind, body) = message::write_answer(id, &Err(error.clone()), 1 << 20);
            let expected = json!({ "id": id, "kind": "not_found", "message": error.message, "hint": error.hint });
            prop_assert_eq!((kind, read(&body)), (frame::ERROR, expected));
        }

        #[test]
        fn last_words_are_read_as_they_were_written(
            written in prop::collection::btree_map(r"[a-z_][a-z_0-9]{0,9}", captured(), 0..6),
            statements in 0_u32..18,
            line in any::<u32>(),
            traceback in "[^\\p{Cc}]{0,99}",
        ) {
            let written: Vec<Captured> =
                written.into_iter().map(|(name, captured)| Captured { name: format!("{name}_"), ..captured }).collect();
            let ending = json!({
                "kind": "raised", "traceback": traceback, "exception": "E", "statement": statements, "line": line,
            });
            let body = json!({
                "ending": ending, "written": written, "removed": ["gone"], "not_carried": [["*", "why"]],
                "statements_done": statements / 2, "statements": statements,
            });
            let body = serde_json::to_vec(&body).unwrap();
            done(&body);
            let read = done::check(message::read(&body).unwrap(), &run()).unwrap();
            prop_assert_eq!((read.written, read.removed), (written, vec!["gone".to_owned()]));
            prop_assert_eq!((read.statements_done, read.statements), (statements / 2, statements));
        }

        #[test]
        fn whatever_a_frame_says_is_read_or_refused(kind in 0_u8..30, body in prop::collection::vec(any::<u8>(), 0..200)) {
            message(kind, &body);
        }

        #[test]
        fn values_are_counted_without_reading_them(value in value()) {
            let (values, empty) = count(&value);
            for body in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                prop_assert_eq!(message::count_values(body.as_bytes()), values + empty);
            }
        }
    }

    #[test]
    fn the_corpus_of_the_fuzz_targets_passes() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
        let mut read = 0;
        for target in ["wire", "message", "done", "round"] {
            for entry in std::fs::read_dir(corpus.join(target)).unwrap() {
                let bytes = std::fs::read(entry.unwrap().path()).unwrap();
                match target {
                    "wire" => assert!(wire(&bytes) < 10),
                    "done" => done(&bytes),
                    "round" => drop(round(&bytes)),
                    _ => message(bytes[0], &bytes[1..]),
                }
                read += 1;
            }
        }
        assert!(read > 25, "{read}");
    }
}
