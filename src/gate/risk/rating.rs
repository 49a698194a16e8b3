//! What the program itself says of its risk, `# risk: destructive`: in the comment that it begins with, of all its calls; in the
//! lines of a call's statement and the comment right above it, of that call. A model that writes it knows what it is about to do; nothing that it writes makes anything
//! less strict.

use fimble_toolkit::Risk;

use super::Analyser;
use crate::gate::policy::Subject;
use crate::program::lines_about;

/// Lines at the beginning that are looked at.
const HEAD_LINES: usize = 20;

/// Words for a risk that a person should see.
const GRAVE: [&str; 4] = ["destructive", "high", "critical", "dangerous"];

pub(super) struct OwnRating;

impl Analyser for OwnRating {
    fn analyse(&self, call: &Subject<'_>) -> Option<String> {
        if call.risk == Risk::Read {
            return None;
        }
        let word = rating(call.program, call.line)?;
        Some(format!("is rated `risk: {word}` by the program itself"))
    }
}

/// The grave word that a program says of its call at that line, which counts from 1; `None` if it says none.
pub(in crate::gate) fn rating(program: &str, line: u32) -> Option<&'static str> {
    if !program.lines().any(|line| rated(line).is_some()) {
        return None;
    }
    let head = program.lines().take(HEAD_LINES).take_while(|line| {
        let line = line.trim_start();
        line.is_empty() || line.starts_with('#')
    });
    head.chain(lines_about(program, line)).find_map(rated)
}

fn rated(line: &str) -> Option<&'static str> {
    let comment = line[line.find('#')?..].to_lowercase();
    let rating = comment.split_once("risk:")?.1.trim_start();
    GRAVE.into_iter().find(|word| rating.starts_with(word))
}
