//! Finds every form of every secret in one pass over a text. It does not know where the text goes.

use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use super::{MASK, forms};

/// What is looked for.
pub(super) struct Mask {
    finder: Finder,
    /// All forms, sorted.
    forms: Vec<String>,
    /// Bytes of the longest.
    longest: usize,
    /// The bytes that a form can begin with.
    begins: [bool; 256],
    /// True if a number may be a secret.
    has_numbers: bool,
}

enum Finder {
    /// There are no secrets.
    Nothing,
    Forms(AhoCorasick),
    /// There are too many to be looked for: nothing may be shown.
    Everything,
}

impl Mask {
    pub fn new(values: &BTreeSet<String>) -> Self {
        let mut all = BTreeSet::new();
        values.iter().for_each(|value| forms::add(value, &mut all));
        let forms: Vec<String> = all.into_iter().collect();
        let finder = match AhoCorasick::builder().match_kind(MatchKind::Standard).build(&forms) {
            _ if forms.is_empty() => Finder::Nothing,
            Ok(finder) => Finder::Forms(finder),
            Err(error) => {
                tracing::error!("there are too many secrets to mask, so nothing is shown: {error}");
                Finder::Everything
            }
        };
        let mut begins = [false; 256];
        forms.iter().filter_map(|form| form.as_bytes().first()).for_each(|first| begins[usize::from(*first)] = true);
        let is_number = |form: &String| form.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        Self {
            longest: forms.iter().map(String::len).max().unwrap_or_default(),
            has_numbers: forms.iter().any(is_number),
            finder,
            forms,
            begins,
        }
    }

    /// True if there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        matches!(self.finder, Finder::Nothing)
    }

    /// True if a secret stands in `text`.
    pub fn finds(&self, text: &str) -> bool {
        match &self.finder {
            Finder::Nothing => false,
            Finder::Forms(finder) => finder.is_match(text),
            Finder::Everything => true,
        }
    }

    /// `text` with every secret replaced; `None` if there is none in it.
    pub fn masked(&self, text: &str) -> Option<String> {
        if !self.finds(text) {
            return None;
        }
        let mut masked = String::with_capacity(text.len());
        let mut at = 0;
        for span in self.spans(text, 0) {
            masked.push_str(text.get(at..span.start).unwrap_or_default());
            masked.push_str(MASK);
            at = span.end;
        }
        masked.push_str(text.get(at..).unwrap_or_default());
        Some(masked)
    }

    /// Where secrets stand, in order; those that overlap are one. The first `covered` bytes belong to one that began
    /// earlier.
    pub fn spans(&self, text: &str, covered: usize) -> Vec<Range<usize>> {
        let finder = match &self.finder {
            Finder::Nothing => return Vec::new(),
            Finder::Forms(finder) => finder,
            Finder::Everything => return std::iter::once(0..text.len()).filter(|span| !span.is_empty()).collect(),
        };
        let mut found: Vec<Range<usize>> = Vec::new();
        found.extend(Some(0..covered).filter(|span| !span.is_empty()));
        found.extend(finder.find_overlapping_iter(text).map(|found| found.range()));
        found.sort_by_key(|span| (span.start, span.end));
        let mut spans: Vec<Range<usize>> = Vec::new();
        for span in found {
            match spans.last_mut() {
                Some(last) if span.start < last.end => last.end = last.end.max(span.end),
                _ => spans.push(span),
            }
        }
        spans
    }

    /// Where the end of `text` begins that may be the beginning of a secret; its length if there is none.
    pub fn open_end(&self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let first = bytes.len().saturating_sub(self.longest.saturating_sub(1));
        (first..bytes.len()).find(|at| self.may_begin(&bytes[*at..])).unwrap_or(bytes.len())
    }

    /// True if a longer form begins with `part`.
    fn may_begin(&self, part: &[u8]) -> bool {
        part.first().is_some_and(|first| self.begins[usize::from(*first)]) && {
            let next = self.forms.partition_point(|form| form.as_bytes() <= part);
            self.forms.get(next).is_some_and(|form| form.as_bytes().starts_with(part))
        }
    }

    /// Replaces every secret in the strings, keys and numbers of `value`.
    pub fn mask_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(masked) = self.masked(text) {
                    *text = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_value(item)),
            Value::Object(fields) => {
                if fields.keys().any(|key| self.finds(key)) {
                    let masked = |key: String| self.masked(&key).unwrap_or(key);
                    *fields = std::mem::take(fields).into_iter().map(|(key, item)| (masked(key), item)).collect();
                }
                fields.values_mut().for_each(|item| self.mask_value(item));
            }
            Value::Number(number) if self.has_numbers => {
                if let Some(masked) = self.masked(&number.to_string()) {
                    *value = Value::String(masked);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
