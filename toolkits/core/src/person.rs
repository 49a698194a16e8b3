//! The person on whose behalf a call is made, for toolkits whose system asks one in the middle of a call.
//!
//! It does not know where the person sits. Most toolkits never ask: what they need is an argument.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

/// Somebody, or something that speaks for them.
#[async_trait]
pub trait Answers: Send + Sync {
    /// The answer to a question, one of `choices` if there are any; `None` if nobody is there to give one. The future
    /// may take as long as a person does; dropping it takes the question back.
    async fn answer(&self, question: &str, choices: &[String]) -> Option<String>;
}

/// A person, or by default nobody.
#[derive(Clone, Default)]
pub struct Person(Option<Arc<dyn Answers>>);

impl Person {
    /// A person who can be asked.
    pub fn new(answers: Arc<dyn Answers>) -> Self {
        Self(Some(answers))
    }

    /// The answer to a question; `None` if nobody is there.
    pub async fn ask(&self, question: &str, choices: &[String]) -> Option<String> {
        match &self.0 {
            Some(answers) => answers.answer(question, choices).await,
            None => None,
        }
    }
}

impl fmt::Debug for Person {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Person" } else { "Nobody" })
    }
}

/// Two are the same if they ask at the same place.
impl PartialEq for Person {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(another)) => Arc::ptr_eq(one, another),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for Person {}
