//! Programs that use ordinary Python are never refused and never changed; each of them is run once by Python, so that they are
//! known to be right.

use std::io::Write;
use std::process::{Command, Stdio};

use super::*;

/// Programs, parted by lines of `---`.
const SUBJECTS: [(&str, &str); 7] = [
    ("accepted", include_str!("accepted.py")),
    ("classes", include_str!("corpus/classes.py")),
    ("data", include_str!("corpus/data.py")),
    ("flow", include_str!("corpus/flow.py")),
    ("functions", include_str!("corpus/functions.py")),
    ("toolkits", include_str!("corpus/toolkits.py")),
    ("traps", include_str!("corpus/traps.py")),
];

/// Ways to get a list, and, after a line of `===`, what is done with one.
const COMBINED: &str = include_str!("corpus/combined.py");

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split("# ---\n").map(|program| program.trim_matches('\n'))
}

/// All programs, by a name that a failure can tell.
fn programs() -> Vec<(String, String)> {
    let written = SUBJECTS.iter().flat_map(|(subject, text)| {
        parts(text).enumerate().map(move |(number, program)| (format!("{subject} {number}"), program.to_owned()))
    });
    let (ways, uses) = COMBINED.split_once("# ===\n").unwrap();
    let combined = parts(ways).enumerate().flat_map(|(way, get)| {
        parts(uses)
            .enumerate()
            .map(move |(number, what)| (format!("combined {way} {number}"), format!("{get}\n{what}")))
    });
    written.chain(combined).collect()
}

#[test]
fn no_ordinary_program_is_refused_or_changed() {
    let programs = programs();
    let by_hand = programs.iter().filter(|(name, _)| !name.starts_with("combined")).count();
    assert!(by_hand >= 290 && programs.len() >= 450, "{by_hand} of {}", programs.len());
    let mut wrong = Vec::new();
    for (name, program) in &programs {
        match splice_text(&lines::indent(program, HOLE_INDENT), false) {
            Err(refusal) => wrong.push(format!("{name} is refused: {refusal}\n{program}\n")),
            Ok(Program { hole, repairs, warnings, .. }) => {
                if hole != format!("{program}\n") || !repairs.is_empty() || !warnings.is_empty() {
                    wrong.push(format!("{name} is changed: {repairs:?} {warnings:?}\n{program}\n"));
                }
            }
        }
        if let Err(refusal) = file(program) {
            wrong.push(format!("{name} is refused as a file: {refusal}\n{program}\n"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), programs.len(), wrong.join("\n"));
}

#[test]
fn every_ordinary_program_is_right() {
    let programs = programs();
    let texts: Vec<&str> = programs.iter().map(|(_, program)| program.as_str()).collect();
    let runner = concat!(env!("CARGO_MANIFEST_DIR"), "/src/program/tests/corpus/run.py");
    let mut python = Command::new("/usr/bin/python3")
        .args(["-I", "-B", "-W", "ignore", runner])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(serde_json::to_string(&texts).unwrap().as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let wrong: Vec<(usize, String)> = serde_json::from_slice(&output.stdout).unwrap();
    let told: Vec<String> = wrong.iter().map(|(number, why)| format!("{}: {why}", programs[*number].0)).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
}
