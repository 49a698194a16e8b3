//! Numbers in settings, and what they may be: a limit that makes no sense is refused before anything starts.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::ToolError;

/// A number of the settings, and what it may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    name: String,
    shown: String,
    allowed: String,
    is_allowed: bool,
}

impl Number {
    /// A whole number. `name` is that of the setting, e.g. `toolkits.http.redirects`; `unit` is in the plural, empty if there is
    /// none.
    pub fn whole(name: impl Into<String>, value: u64, allowed: RangeInclusive<u64>, unit: &str) -> Self {
        let said = format!("give a whole number{}, {} to {}", of(unit), allowed.start(), allowed.end());
        Self::new(name.into(), value, said, allowed.contains(&value))
    }

    /// A number that may have a fraction.
    pub fn real(name: impl Into<String>, value: f64, allowed: RangeInclusive<f64>, unit: &str) -> Self {
        let said = format!("give a number{}, {} to {}", of(unit), allowed.start(), allowed.end());
        Self::new(name.into(), value, said, allowed.contains(&value))
    }

    /// A number that may have a fraction, above 0 and at most `most`.
    pub fn above_zero(name: impl Into<String>, value: f64, most: f64, unit: &str) -> Self {
        let said = format!("give a number{} above 0 and at most {most}", of(unit));
        Self::new(name.into(), value, said, value > 0.0 && value <= most)
    }

    fn new(name: String, value: impl Display, allowed: String, is_allowed: bool) -> Self {
        Self { name, shown: value.to_string(), allowed, is_allowed }
    }

    /// The setting's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it may be, as a hint.
    pub fn hint(&self) -> &str {
        &self.allowed
    }

    /// What is wrong with it, without its name; `None` if it makes sense.
    pub fn problem(&self) -> Option<String> {
        (!self.is_allowed).then(|| format!("{} is out of range", self.shown))
    }

    /// Lets a number pass that makes sense.
    ///
    /// # Errors
    /// The setting's name and value, with what it may be as the hint.
    pub fn check(&self) -> Result<(), ToolError> {
        match self.problem() {
            None => Ok(()),
            Some(problem) => {
                Err(ToolError::invalid_argument(format!("`{}`: {problem}", self.name)).with_hint(&self.allowed))
            }
        }
    }
}

fn of(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(" of {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_or_beyond_its_ends_is_out_of_range() {
        let wall = |value| Number::above_zero("wall_s", value, 60.0, "seconds");
        let linger = |value| Number::real("linger_s", value, 0.0..=60.0, "seconds");
        let wrong = [
            wall(0.0),
            wall(-1.0),
            wall(f64::NAN),
            wall(f64::INFINITY),
            wall(60.1),
            linger(-0.5),
            linger(f64::NAN),
            Number::whole("rows", 0, 1..=9, "rows"),
            Number::whole("rows", 10, 1..=9, "rows"),
        ];
        for number in wrong {
            assert!(number.check().is_err(), "{number:?}");
        }
        for number in [wall(0.1), wall(60.0), linger(0.0), Number::whole("rows", 1, 1..=9, "rows")] {
            assert_eq!(number.check(), Ok(()), "{number:?}");
        }
        assert_eq!(
            wall(-1.5).check().map_err(|error| error.to_string()),
            Err("`wall_s`: -1.5 is out of range (hint: give a number of seconds above 0 and at most 60)".to_owned())
        );
    }
}
