//! Times and steps as a model writes them, and as the server takes them: seconds.

use std::fmt;

use fimble_toolkit::ToolError;
use jiff::Timestamp;

/// A point in time, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moment(f64);

/// The time between two values, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step(f64);

/// Values a series gets if nobody says a step.
const STEPS: f64 = 60.0;
/// What the server gives of one series at most.
const MOST_STEPS: f64 = 11_000.0;

impl Moment {
    /// RFC 3339, seconds since 1970, `now`, or how long ago: `2h`, `-2h`, `now-2h`.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, ToolError> {
        Self::at(text.trim(), seconds(Timestamp::now())).ok_or_else(|| {
            ToolError::invalid_argument(format!(
                "`{name}` is no time: `{text}`; write RFC 3339 such as 2026-01-31T12:00:00Z, `now`, or how long ago, such as `2h`"
            ))
        })
    }

    fn at(text: &str, now: f64) -> Option<Self> {
        let ago = text.strip_prefix("now").unwrap_or(text).trim_start();
        if text == "now" {
            return Some(Self(now));
        }
        if let Some(length) = duration(ago.strip_prefix('-').unwrap_or(ago).trim_start()) {
            return Some(Self(now - length));
        }
        if let Ok(seconds) = text.parse::<f64>() {
            return (seconds.is_finite() && seconds.abs() < 1e12).then_some(Self(seconds));
        }
        text.parse::<Timestamp>().ok().map(|time| Self(seconds(time)))
    }
}

impl Step {
    pub(crate) fn choose(text: Option<&str>, start: Moment, end: Moment) -> Result<Self, ToolError> {
        let range = end.0 - start.0;
        if range < 0.0 {
            return Err(ToolError::invalid_argument("`start` is after `end`"));
        }
        let Some(text) = text else { return Ok(Self((range / STEPS).ceil().max(1.0))) };
        let step = duration(text.trim()).or_else(|| text.trim().parse().ok());
        let step = step.filter(|step: &f64| step.is_finite() && *step > 0.0).ok_or_else(|| {
            ToolError::invalid_argument(format!("`step` is no length of time: `{text}`; write `30s`, `5m`, or seconds"))
        })?;
        if range / step > MOST_STEPS {
            let least = (range / MOST_STEPS).ceil();
            return Err(ToolError::invalid_argument(format!(
                "`step` is too short for the time: more than {MOST_STEPS} values a series; use `{least}s` or more"
            )));
        }
        Ok(Self(step))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.3}", self.0)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// The server's seconds as RFC 3339, with milliseconds where there are any; `None` beyond the calendar.
pub(crate) fn written(seconds: f64) -> Option<String> {
    #[expect(clippy::cast_possible_truncation, reason = "a cast of a float saturates, and jiff checks the range")]
    let milliseconds = (seconds * 1000.0).round() as i64;
    Timestamp::from_millisecond(milliseconds).ok().map(|time| time.to_string())
}

fn seconds(time: Timestamp) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of any calendar year are exact in a double")]
    let milliseconds = time.as_millisecond() as f64;
    milliseconds / 1000.0
}

/// Seconds of a length of time as Prometheus writes it: `1h30m`, `500ms`, `7d`.
fn duration(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let unit = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            "y" => 31_536_000.0,
            _ => return None,
        };
        total += f64::from(number.parse::<u32>().ok()?) * unit;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_in_every_way_a_model_writes_them() {
        let at = |text| Moment::at(text, 10_000.0).map(|moment| moment.to_string());
        for (text, expected) in [
            ("now", "10000.000"),
            ("1h", "6400.000"),
            ("-1h30m", "4600.000"),
            ("now-500ms", "9999.500"),
            ("now - 1m", "9940.000"),
            ("12.5", "12.500"),
            ("1970-01-01T01:00:00Z", "3600.000"),
            ("1970-01-01T01:00:00.25+01:00", "0.250"),
        ] {
            assert_eq!(at(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "yesterday", "1x", "h", "1h-", "nan", "inf", "99999999999999999999d", "1970-01-01", "now1"] {
            assert_eq!(at(text), None, "{text}");
        }
    }

    #[test]
    fn a_step_is_chosen_or_checked() {
        let choose = |text| Step::choose(text, Moment(0.0), Moment(3_600.0)).map(|step| step.to_string());
        assert_eq!(choose(None).unwrap(), "60");
        assert_eq!(choose(Some("30s")).unwrap(), "30");
        assert_eq!(choose(Some("0.5")).unwrap(), "0.5");
        assert!(choose(Some("10ms")).unwrap_err().message.ends_with("use `1s` or more"));
        assert!(choose(Some("0s")).unwrap_err().message.starts_with("`step` is no length of time"));
        assert_eq!(Step::choose(None, Moment(5.0), Moment(5.0)).unwrap(), Step(1.0));
        assert_eq!(Step::choose(None, Moment(6.0), Moment(5.0)).unwrap_err().message, "`start` is after `end`");
    }

    #[test]
    fn times_are_written_by_the_calendar() {
        assert_eq!(written(1_795_323_580.19).as_deref(), Some("2026-11-22T04:59:40.19Z"));
        assert_eq!(written(0.0).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(written(1e300), None);
    }

    proptest! {
        #[test]
        fn no_text_is_a_time_without_an_end(text in "\\PC{0,24}") {
            if let Some(Moment(seconds)) = Moment::at(&text, 0.0) {
                prop_assert!(seconds.is_finite());
            }
        }

        #[test]
        fn any_number_of_seconds_can_be_asked_to_be_written(seconds in any::<f64>()) {
            let _ = written(seconds);
        }
    }
}
