//! Whether and when a failed request is sent again. It does not know what the failure was about.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::HeaderMap;

/// The longest wait that a server may ask for; a longer one is a refusal.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// What the server thinks of a second try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    /// A second try is of no use.
    GiveUp,
    /// Worth a second try, after our own pause or the server's.
    Retry(Option<Duration>),
}

/// Reads the advice from a status and its headers. The server's own word wins over the status; a wait of more than two
/// minutes is not worth it.
pub(super) fn advice(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Advice {
    let retry = match text(headers, "x-should-retry") {
        Some("true") => true,
        Some("false") => false,
        // 501 is what a server answers that never will.
        _ => matches!(status.as_u16(), 408 | 409 | 429 | 500 | 502..),
    };
    match wait_asked(headers, now) {
        _ if !retry => Advice::GiveUp,
        Some(wait) if wait > LONGEST_WAIT => Advice::GiveUp,
        wait => Advice::Retry(wait),
    }
}

/// The pause before try `attempt` (the first repetition is 0): what the server asked for, or half a second doubled
/// each time up to eight, less up to a quarter so that many clients do not come back at once.
pub(super) fn pause(attempt: u32, asked: Option<Duration>) -> Duration {
    asked.unwrap_or_else(|| {
        let whole = 0.5 * f64::from(1_u32 << attempt.min(4));
        Duration::from_secs_f64(whole.min(8.0) * (1.0 - 0.25 * chance()))
    })
}

fn wait_asked(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let number = |name, unit: f64| {
        let value = text(headers, name)?.trim().parse::<f64>().ok()?;
        Duration::try_from_secs_f64(value * unit).ok()
    };
    number("retry-after-ms", 0.001).or_else(|| number("retry-after", 1.0)).or_else(|| {
        let at = httpdate::parse_http_date(text(headers, "retry-after")?).ok()?;
        Some(at.duration_since(now).unwrap_or_default())
    })
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// A number from 0 to 1 from the process's hash seed.
fn chance() -> f64 {
    f64::from(u32::try_from(RandomState::new().build_hasher().finish() >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(429, &[], Advice::Retry(None))]
    #[case(408, &[], Advice::Retry(None))]
    #[case(409, &[], Advice::Retry(None))]
    #[case(500, &[], Advice::Retry(None))]
    #[case(529, &[], Advice::Retry(None))]
    #[case(501, &[], Advice::GiveUp)]
    #[case(400, &[], Advice::GiveUp)]
    #[case(400, &[("x-should-retry", "true")], Advice::Retry(None))]
    #[case(503, &[("x-should-retry", "false")], Advice::GiveUp)]
    #[case(429, &[("retry-after", "3")], Advice::Retry(Some(Duration::from_secs(3))))]
    #[case(429, &[("retry-after", "3"), ("retry-after-ms", "250")], Advice::Retry(Some(Duration::from_millis(250))))]
    #[case(429, &[("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT")], Advice::Retry(Some(Duration::from_secs(3))))]
    #[case(429, &[("retry-after", "Sun, 06 Nov 1994 08:40:00 GMT")], Advice::Retry(Some(Duration::ZERO)))]
    #[case(429, &[("retry-after", "121")], Advice::GiveUp)]
    #[case(429, &[("retry-after", "-1")], Advice::Retry(None))]
    #[case(429, &[("retry-after", "soon")], Advice::Retry(None))]
    fn the_servers_word_wins_over_its_status(
        #[case] status: u16,
        #[case] headers: &[(&'static str, &'static str)],
        #[case] expected: Advice,
    ) {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect::<HeaderMap>();
        assert_eq!(advice(StatusCode::from_u16(status).unwrap(), &headers, now), expected);
    }

    #[test]
    fn the_pause_doubles_up_to_eight_seconds_less_a_quarter_at_most() {
        for (attempt, whole) in [(0, 0.5), (1, 1.0), (2, 2.0), (4, 8.0), (40, 8.0)] {
            let pause = pause(attempt, None).as_secs_f64();
            assert!((whole * 0.75..=whole).contains(&pause), "{attempt}: {pause}");
        }
        assert_eq!(pause(3, Some(Duration::from_secs(7))), Duration::from_secs(7));
    }
}
