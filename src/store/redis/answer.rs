//! What scripts answer, as the words they begin with. Every part is read as if a stranger had written it.

use ::redis::Value;

use crate::store::StoreError;
use crate::store::packing::corrupt;

/// The schema version that this program reads and writes.
pub const VERSION: u32 = 3;

/// A script's answer: its first word, and what follows.
pub struct Answer {
    /// Says what it is: `ok`, or why nothing was done.
    pub word: String,
    /// The rest; `None` for what is not there.
    pub parts: Vec<Option<Vec<u8>>>,
}

impl Answer {
    /// Reads an answer.
    ///
    /// # Errors
    /// `TooNew` and `Corrupt` where the script says so.
    pub fn read(value: Value) -> Result<Self, StoreError> {
        let strange = || StoreError::Failed("the server's answer is none of Fimble's scripts".into());
        let Value::Array(values) = value else { return Err(strange()) };
        let mut parts = values.into_iter().map(|value| match value {
            Value::BulkString(bytes) => Ok(Some(bytes)),
            Value::SimpleString(text) => Ok(Some(text.into_bytes())),
            Value::Int(number) => Ok(Some(number.to_string().into_bytes())),
            Value::Nil => Ok(None),
            _ => Err(strange()),
        });
        let word = parts.next().ok_or_else(strange)??.ok_or_else(strange)?;
        let word = String::from_utf8(word).map_err(|_| strange())?;
        let parts: Vec<_> = parts.collect::<Result<_, _>>()?;
        let answer = Self { word, parts };
        match answer.word.as_str() {
            "newer" => Err(newer(&answer.text("session", 0)?)),
            "corrupt" => Err(corrupt("session", answer.text("session", 1)?)),
            _ => Ok(answer),
        }
    }

    /// A part that must be there.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn bytes(&self, what: &'static str, at: usize) -> Result<&[u8], StoreError> {
        self.parts.get(at).and_then(Option::as_deref).ok_or_else(|| corrupt(what, "a part of it is missing"))
    }

    /// A part that must be text.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn text(&self, what: &'static str, at: usize) -> Result<String, StoreError> {
        String::from_utf8(self.bytes(what, at)?.to_vec()).map_err(|error| corrupt(what, error))
    }

    /// A part that must be a counter.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn number(&self, what: &'static str, at: usize) -> Result<u64, StoreError> {
        self.text(what, at)?.parse().map_err(|error| corrupt(what, error))
    }
}

/// What a script that knows nothing of `word` is told by; the caller has dealt with those that it expects.
pub fn unexpected(word: &str) -> StoreError {
    StoreError::Failed(format!("the server answered `{word}`"))
}

/// A schema version above [`VERSION`], as text.
pub fn newer(found: &str) -> StoreError {
    match found.parse() {
        Ok(found) => StoreError::TooNew { found, supported: VERSION },
        Err(_) => corrupt("schema version", format!("it is no number: `{found}`")),
    }
}
