//! Points in time, as git stores them and as a model writes them.

use fimble_toolkit::ToolError;
use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use jiff::{Span, Timestamp, ToSpan, Zoned};

/// A git time as RFC 3339, in the zone of whoever made it.
pub(crate) fn rfc3339(time: git2::Time) -> String {
    let timestamp = Timestamp::from_second(time.seconds()).unwrap_or_default();
    let offset = Offset::from_seconds(time.offset_minutes().saturating_mul(60)).unwrap_or(Offset::UTC);
    timestamp.to_zoned(TimeZone::fixed(offset)).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// Which end of a day a bare date means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Its first second.
    First,
    /// Its last second.
    Last,
}

/// The time that `text` means, in seconds since 1970: a date, a date and time, or a span ago.
pub(crate) fn parse(text: &str, end: End, now: &Zoned) -> Result<i64, ToolError> {
    let text = text.trim();
    let of_day = |date: Date| {
        let start = date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
        Some(if end == End::First { start } else { start + 86_399 })
    };
    let day_ago = |days: i64| of_day(now.with_time_zone(TimeZone::UTC).date().checked_sub(days.days()).ok()?);
    let word = match text.to_ascii_lowercase().as_str() {
        "now" => Some(now.timestamp().as_second()),
        "today" => day_ago(0),
        "yesterday" => day_ago(1),
        _ => None,
    };
    word.or_else(|| Some(text.parse::<Timestamp>().ok()?.as_second()))
        .or_else(|| if text.len() <= 10 { of_day(text.parse().ok()?) } else { None })
        .or_else(|| Some(text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second()))
        .or_else(|| {
            // `7d` and `2 weeks` are meant as ago as well: nobody asks for commits of the future.
            let span: Span = text.parse().ok()?;
            let ago = if span.is_negative() { span } else { span.negate() };
            Some(now.checked_add(ago).ok()?.timestamp().as_second())
        })
        .ok_or_else(|| {
            ToolError::invalid_argument(format!("`{text}` is no date"))
                .with_hint("write `2026-01-31`, `2026-01-31T12:00:00Z` or `2 weeks ago`")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_a_model_writes_them() {
        let now: Zoned = "2026-03-10T12:00:00+00:00[UTC]".parse().unwrap();
        let read = |text: &str, end| {
            let seconds = parse(text, end, &now).map_err(|error| error.message)?;
            Ok::<_, String>(Timestamp::from_second(seconds).unwrap().to_string())
        };
        for (text, end, expected) in [
            ("2026-01-31", End::First, Ok("2026-01-31T00:00:00Z")),
            ("2026-01-31", End::Last, Ok("2026-01-31T23:59:59Z")),
            ("2026-01-31T12:00:00+02:00", End::Last, Ok("2026-01-31T10:00:00Z")),
            ("2026-01-31 12:00:00", End::First, Ok("2026-01-31T12:00:00Z")),
            ("2 weeks ago", End::First, Ok("2026-02-24T12:00:00Z")),
            ("1 month ago", End::First, Ok("2026-02-10T12:00:00Z")),
            ("7d", End::First, Ok("2026-03-03T12:00:00Z")),
            ("yesterday", End::First, Ok("2026-03-09T00:00:00Z")),
            ("today", End::Last, Ok("2026-03-10T23:59:59Z")),
            ("last spring", End::First, Err("`last spring` is no date")),
            ("2026-02-30", End::First, Err("`2026-02-30` is no date")),
            ("", End::First, Err("`` is no date")),
        ] {
            assert_eq!(read(text, end), expected.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
    }
}
