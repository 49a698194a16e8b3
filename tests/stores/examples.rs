//! Records to store: each is whole, and differs from its neighbours in every field that has a number.

use fimble::event::{Custom, Event, EventKind};
use fimble::record::{
    CallRecord, CallStatus, Outcome, Readings, Round, RoundUsage, SessionRecord, SessionStatus, Site, Variable,
    VariableKind, WrittenVariable,
};
use fimble::segment::{Segment, SegmentKind};
use fimble::store::RoundCommit;
use fimble::store::packing::content_hash;
use fimble_toolkit::Risk;
use jiff::Timestamp;
use serde_json::json;

/// A time that needs all nine digits.
pub fn at(second: u64) -> Timestamp {
    Timestamp::new(1_760_000_000 + i64::try_from(second).unwrap(), 123_456_789).unwrap()
}

pub fn session(id: &str) -> SessionRecord {
    SessionRecord {
        id: id.into(),
        tenant: "local".into(),
        user: "ada".into(),
        title: "restart what failed".into(),
        status: SessionStatus::Running,
        created_at: at(0),
        updated_at: at(1),
        rounds: 0,
        segments: 0,
        events: 0,
        turn: None,
    }
}

pub fn segment(id: u64) -> Segment {
    let mut segment = Segment::new(SegmentKind::Output, id / 3, format!("line {id}"));
    (segment.id, segment.at, segment.pinned) = (id, at(id), id.is_multiple_of(2));
    segment
}

pub fn event(session: &str, seq: u64) -> Event {
    let kind = EventKind::Custom(Custom::Print { text: format!("piece {seq}") });
    Event { seq, session: session.into(), round: seq / 5, at: at(seq), kind }
}

pub fn round(number: u64) -> Round {
    Round {
        number,
        parents: if number > 1 { vec![number - 1] } else { vec![] },
        goal: format!("goal {number}"),
        prefix: "try:\n".into(),
        hole: format!("x = {number}\nprint(x)"),
        suffix: "except Exception as error:\n    report(error)".into(),
        output: String::new(),
        written: vec![],
        removed: vec![],
        not_kept: [("lines".to_owned(), "it is a generator".to_owned())].into(),
        statements_done: 0,
        outcome: None,
        started_at: at(number),
        ended_at: None,
        usage: RoundUsage::default(),
        seed: format!("{number:064x}"),
        trace: format!("run-{number}"),
    }
}

/// The same round after it ran.
pub fn ended(number: u64) -> Round {
    Round {
        output: format!("{number}\n"),
        statements_done: 2,
        outcome: Some(Outcome::Finished { value: Some("0.1".into()) }),
        ended_at: Some(at(number + 1)),
        usage: RoundUsage {
            wall_ms: 0.1 + 0.2,
            cpu_ms: 1.0 / 3.0,
            peak_rss_kib: 9_000,
            prompt_tokens: 12,
            completion_tokens: 3,
        },
        ..round(number)
    }
}

pub fn call(key: &str, ordinal: u32) -> CallRecord {
    let serde_json::Value::Object(arguments) = json!({"path": "/tmp/ü\0", "limit": 5, "ratio": 0.1}) else {
        panic!("arguments are an object");
    };
    CallRecord {
        key: key.into(),
        number: u64::from(ordinal) + 1,
        site: Site { line: 3, column: 8 },
        ordinal,
        toolkit: "git_toolkit".into(),
        operation: "log".into(),
        arguments,
        risk: Risk::Read,
        status: CallStatus::Requested,
        requested_at: at(ordinal.into()),
        done_at: None,
        readings: Readings { wall: vec![1_760_000_000_123_456_789, i64::MAX], steady: vec![0], counter: vec![] },
    }
}

pub fn done(key: &str, ordinal: u32) -> CallRecord {
    let result = json!({"z": 1, "a": [0.1, 1e-7, 123_456_789_012_345_678_u64, null], "text": "\u{0}🙂"});
    CallRecord { status: CallStatus::Done { result }, done_at: Some(at(9)), ..call(key, ordinal) }
}

pub fn written(name: &str, round: u64, content: &str) -> WrittenVariable {
    let variable = Variable {
        name: name.into(),
        kind: VariableKind::Value,
        type_name: "str".into(),
        preview: format!("{name} of {round}"),
        size: content.len() as u64,
        hash: content_hash(content),
        round,
        line: 7,
        references: vec!["other".into(), "name".into()],
    };
    WrittenVariable { variable, content: content.into() }
}

/// The end of a round that changed nothing but itself.
pub fn commit(session: &SessionRecord, number: u64) -> RoundCommit {
    RoundCommit {
        session: SessionRecord { rounds: number, updated_at: at(number + 2), ..session.clone() },
        round: ended(number),
        written: vec![],
        removed: vec![],
        segments: vec![],
        events: vec![],
    }
}

/// One event of every kind that is stored.
pub fn event_kinds() -> Vec<EventKind> {
    let text = || "a \0 🙂 \"quoted\"".to_string();
    let custom = [
        Custom::Isolation {
            level: "none".into(),
            layers: vec!["limits".into()],
            missing: vec!["landlock".into(), "seccomp".into()],
            warning: Some("isolation is none".into()),
        },
        Custom::Program { prefix: text(), hole: text(), suffix: text(), repairs: vec![text()] },
        Custom::Refused { hole: text(), message: text() },
        Custom::Print { text: text() },
        Custom::Hook { event: "PreToolUse".into(), hook: text(), message: text() },
        Custom::Statement { number: 1, of: 2 },
        Custom::RoundEnded {
            outcome: "raised".into(),
            message: text(),
            value: Some(text()),
            written: vec!["x".into()],
            removed: vec![],
            not_carried: vec![("socket".into(), text())],
            wall_ms: 0.1 + 0.2,
            cpu_ms: 2.0,
        },
        Custom::ModelUsage {
            model: "m".into(),
            prompt_tokens: 1,
            cached_tokens: 2,
            completion_tokens: 3,
            duration_ms: 1.0 / 3.0,
        },
        Custom::Question { id: "q".into(), text: text(), choices: vec![text()] },
    ];
    let mut kinds = vec![
        EventKind::RunStarted { thread_id: "s".into(), run_id: "r".into() },
        EventKind::RunFinished { thread_id: "s".into(), run_id: "r".into(), result: json!({"kind": [0.1, -0.0, {}]}) },
        EventKind::RunError { message: text(), code: "store".into() },
        EventKind::StepStarted { step_name: "act".into() },
        EventKind::StepFinished { step_name: "act".into() },
        EventKind::TextMessageChunk { message_id: "1".into(), role: "assistant".into(), delta: text() },
        EventKind::ToolCallChunk {
            tool_call_id: "k".into(),
            tool_call_name: "git_toolkit.log".into(),
            delta: text(),
            rating: Some("high".into()),
        },
        EventKind::ToolCallResult {
            message_id: "2".into(),
            tool_call_id: "k".into(),
            content: text(),
            role: "tool".into(),
            failed: true,
            duration_ms: 1e-9,
        },
    ];
    kinds.extend(custom.into_iter().map(EventKind::Custom));
    kinds
}
