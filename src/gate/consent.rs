//! A call that a person is to approve, and what they may say to it.

use fimble_toolkit::Risk;
use serde_json::{Map, Value};

use super::policy::{Extent, Pattern, Subject};
use super::secrets::MASK;
use super::{Gate, Judgement, answer, call};
use crate::record::CallRecord;

/// A call that policy wants a person to approve.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// `toolkit.operation`.
    pub operation: String,
    /// The bound arguments as JSON text, masked.
    pub arguments: String,
    /// The declared risk.
    pub risk: Risk,
    /// Why they are asked, if it is not the risk alone.
    pub reason: Option<String>,
    /// The bound arguments, masked.
    pub bound: Map<String, Value>,
    /// True if `always` can only be said of exactly this call.
    pub is_grave: bool,
}

/// What a person says to it.
#[derive(Debug, Clone, PartialEq)]
pub enum Consent {
    /// Not this call.
    No,
    /// This call.
    Once,
    /// This call and those like it, also another time.
    Always(Extent),
}

/// What can be said besides `yes` and `no`.
pub const ALWAYS: &str = "always (these arguments), always any (any arguments), always NAME=PATTERN …";

impl Approval {
    /// The question, in words.
    pub fn question(&self) -> String {
        let reason = self.reason.as_ref().map_or(String::new(), |reason| format!("\n{reason}"));
        format!("May this {} operation be called? {}({}){reason}", self.risk, self.operation, self.arguments)
    }

    /// What a person's words mean.
    ///
    /// # Errors
    /// Why they are no answer.
    pub fn read(&self, said: &str) -> Result<Consent, String> {
        let words = shell_words::split(said).map_err(|_| "a quotation mark is not closed".to_owned())?;
        let lower = words.first().map(|word| word.to_lowercase()).unwrap_or_default();
        match (lower.as_str(), &words.get(1..).unwrap_or_default()) {
            ("y" | "yes", []) => Ok(Consent::Once),
            ("n" | "no", []) => Ok(Consent::No),
            ("a" | "always", patterns) => self.extent(patterns).map(Consent::Always),
            _ => Err(format!("`{said}` is none of yes, no, {ALWAYS}")),
        }
    }

    fn extent(&self, words: &[String]) -> Result<Extent, String> {
        let extent = match words {
            [] => Extent::Exactly(self.bound.clone()),
            [any] if any == "any" => Extent::Any,
            pairs => Extent::Matching(pairs.iter().map(|pair| self.pattern(pair)).collect::<Result<_, _>>()?),
        };
        if self.is_grave && !matches!(extent, Extent::Exactly(_)) {
            return Err("this call is allowed for always only with exactly these arguments: say `always`".to_owned());
        }
        if self.arguments.contains(MASK) {
            return Err("a secret is among the arguments, and no secret is remembered: say yes or no".to_owned());
        }
        if !extent.covers(&self.bound) {
            return Err("these patterns do not fit this call".to_owned());
        }
        Ok(extent)
    }

    fn pattern(&self, pair: &str) -> Result<(String, Pattern), String> {
        let (name, pattern) = pair
            .split_once('=')
            .ok_or_else(|| format!("`{pair}` is neither `any` nor a pattern such as `path=/srv/*`"))?;
        if !self.bound.contains_key(name) {
            let names: Vec<&str> = self.bound.keys().map(String::as_str).collect();
            return Err(format!("this call has no argument `{name}`, but {}", names.join(", ")));
        }
        Ok((name.to_owned(), pattern.parse::<Pattern>().map_err(|error| error.to_string())?))
    }
}

impl Consent {
    /// The words for it, as [`Approval::read`] reads them.
    pub fn words(&self) -> String {
        match self {
            Consent::No => "no".to_owned(),
            Consent::Once => "yes".to_owned(),
            Consent::Always(Extent::Exactly(_)) => "always".to_owned(),
            Consent::Always(Extent::Any) => "always any".to_owned(),
            Consent::Always(Extent::Matching(patterns)) => {
                let one = |(name, pattern): (&String, &Pattern)| format!("{name}={pattern}");
                let patterns: Vec<String> = patterns.iter().map(one).collect();
                format!("always {}", shell_words::join(patterns))
            }
        }
    }
}

impl From<bool> for Consent {
    fn from(is_approved: bool) -> Self {
        if is_approved { Consent::Once } else { Consent::No }
    }
}

/// On whose behalf a call is made, and by which program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller<'a> {
    pub tenant: &'a str,
    pub user: &'a str,
    pub program: &'a str,
}

impl<'a> Caller<'a> {
    /// The call as it is judged.
    pub fn subject(self, record: &'a CallRecord, arguments: &'a Map<String, Value>) -> Subject<'a> {
        Subject {
            toolkit: &record.toolkit,
            operation: &record.operation,
            risk: record.risk,
            arguments,
            tenant: self.tenant,
            user: self.user,
            program: self.program,
            line: record.site.line,
        }
    }
}

impl Gate {
    /// The question whether a call may be made that was judged so.
    pub(super) fn approval(&self, record: &CallRecord, judgement: &Judgement) -> Approval {
        let mut bound = Value::Object(record.arguments.clone());
        self.secrets.mask_value(&mut bound);
        let bound = match bound {
            Value::Object(bound) => bound,
            _ => Map::new(),
        };
        Approval {
            operation: answer::name(record),
            arguments: call::json_text(&bound),
            risk: record.risk,
            reason: judgement.reason(&self.policy()).map(|reason| self.secrets.mask(&reason)),
            bound,
            is_grave: record.risk == Risk::Destructive || !judgement.findings.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn approval(is_grave: bool, arguments: Value) -> Approval {
        let Value::Object(bound) = arguments else { panic!("no object") };
        Approval {
            operation: "files_toolkit.write".to_owned(),
            arguments: call::json_text(&bound),
            risk: Risk::Write,
            reason: None,
            bound,
            is_grave,
        }
    }

    #[test]
    fn what_a_person_says_is_read_and_written_alike() {
        let call = approval(false, json!({"path": "/srv/my notes/a", "text": "x"}));
        let patterns = BTreeMap::from([("path".to_owned(), "/srv/my notes/*".parse().unwrap())]);
        for (said, consent) in [
            ("yes", Consent::Once),
            (" Y ", Consent::Once),
            ("no", Consent::No),
            ("always", Consent::Always(Extent::Exactly(call.bound.clone()))),
            ("always any", Consent::Always(Extent::Any)),
            ("a 'path=/srv/my notes/*'", Consent::Always(Extent::Matching(patterns))),
        ] {
            assert_eq!(call.read(said).as_ref(), Ok(&consent), "{said}");
            assert_eq!(call.read(&consent.words()), Ok(consent), "{said}");
        }
        for (said, wrong) in [
            ("perhaps", "`perhaps` is none of yes, no, always"),
            ("", "`` is none of"),
            ("yes please", "is none of"),
            ("always 'x", "a quotation mark is not closed"),
            ("always maybe", "`maybe` is neither `any` nor a pattern"),
            ("always place=*", "this call has no argument `place`, but path, text"),
            ("always path=[", "`[` is no pattern: "),
            ("always path=/etc/*", "these patterns do not fit this call"),
        ] {
            let error = call.read(said).unwrap_err();
            assert!(error.contains(wrong), "{said}: {error}");
        }
    }

    #[test]
    fn what_is_grave_is_allowed_for_always_only_exactly_and_no_secret_is_remembered() {
        let grave = approval(true, json!({"path": "/srv"}));
        assert!(matches!(grave.read("always"), Ok(Consent::Always(Extent::Exactly(_)))));
        for said in ["always any", "always path=*"] {
            assert!(grave.read(said).unwrap_err().contains("only with exactly these arguments"));
        }
        let secret = approval(false, json!({"path": format!("a {MASK}")}));
        assert!(secret.read("always").unwrap_err().contains("a secret is among the arguments"));
        assert_eq!(secret.read("yes"), Ok(Consent::Once));
    }
}
