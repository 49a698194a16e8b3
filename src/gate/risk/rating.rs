//! What the program itself says of its risk, `# risk: destructive`: in the comment that it begins with, of all its calls; in a
//! call's own line, of that call. A model that writes it knows what it is about to do; nothing that it writes makes anything
//! less strict.

use fimble_toolkit::Risk;

use super::Analyser;
use crate::gate::policy::Subject;

/// Lines at the beginning that are looked at.
const HEAD_LINES: usize = 20;

/// Words for a risk that a person should see.
const GRAVE: [&str; 4] = ["destructive", "high", "critical", "dangerous"];

pub(super) struct OwnRating;

impl Analyser for OwnRating {
    fn analyse(&self, call: &Subject<'_>) -> Option<String> {
        if call.risk == Risk::Read || call.program.is_empty() {
            return None;
        }
        let head = call.program.lines().take(HEAD_LINES).take_while(|line| {
            let line = line.trim_start();
            line.is_empty() || line.starts_with('#')
        });
        let index = usize::try_from(call.line).ok().and_then(|line| line.checked_sub(1));
        let own = index.and_then(|index| call.program.lines().nth(index));
        let word = head.chain(own).find_map(rated)?;
        Some(format!("is rated `risk: {word}` by the program itself"))
    }
}

fn rated(line: &str) -> Option<&'static str> {
    let comment = line[line.find('#')?..].to_lowercase();
    let rating = comment.split_once("risk:")?.1.trim_start();
    GRAVE.into_iter().find(|word| rating.starts_with(word))
}
