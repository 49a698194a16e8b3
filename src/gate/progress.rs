//! How far calls are, as events. What toolkits tell comes from outside: it is masked, cut, and told as seldom as is enough
//! for a person.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fimble_toolkit::{Step, Watches};

use super::replay::Teller;
use super::{Config, Secrets};
use crate::event::{Custom, EventKind};

/// Bytes of a step's text that are looked at: far more than are shown, so that no half of a secret is.
const LOOKED_AT: usize = 64 * 1024;

/// Tells the steps of one round's calls.
pub(super) struct Steps {
    teller: Teller,
    secrets: Secrets,
    pause: Duration,
    /// Events of one call.
    most: u32,
    /// Characters of a text.
    characters: usize,
    told: Mutex<HashMap<String, Told>>,
}

/// What was told of one call.
struct Told {
    last: Step,
    at: Instant,
    events: u32,
}

impl Steps {
    pub(super) fn new(teller: Teller, secrets: Secrets, config: &Config) -> Self {
        Self {
            teller,
            secrets,
            pause: Duration::from_millis(config.progress_ms),
            most: config.progress_events,
            characters: usize::try_from(config.progress_characters).unwrap_or(usize::MAX),
            told: Mutex::default(),
        }
    }

    /// The step as it may be shown: in one line, without what must not be seen.
    fn shown(&self, step: Step) -> Step {
        let text = self.secrets.mask(&step.text[..step.text.floor_char_boundary(LOOKED_AT)]);
        let words = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
        let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let finite = |number: Option<f64>| number.filter(|number| number.is_finite());
        Step { done: finite(step.done), total: finite(step.total), text: line.chars().take(self.characters).collect() }
    }
}

impl Watches for Steps {
    fn watch(&self, key: &str, step: Step) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let before = told.get(key);
        let events = before.map_or(0, |before| before.events);
        if events >= self.most || before.is_some_and(|before| now.duration_since(before.at) < self.pause) {
            return;
        }
        let step = self.shown(step);
        if told.get(key).is_some_and(|before| before.last == step) {
            return;
        }
        told.insert(key.to_owned(), Told { last: step.clone(), at: now, events: events + 1 });
        drop(told);
        let Step { done, total, text } = step;
        self.teller.emit(EventKind::Custom(Custom::Progress { tool_call_id: key.to_owned(), done, total, text }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Emitter;

    fn steps(config: &Config, secrets: Secrets) -> (Steps, Emitter) {
        let emitter = Emitter::detached();
        (Steps::new(Teller::new(emitter.clone(), &[]), secrets, config), emitter)
    }

    fn told(emitter: &Emitter) -> Vec<(String, Option<f64>, String)> {
        let of = |kind| match kind {
            EventKind::Custom(Custom::Progress { tool_call_id, done, text, .. }) => Some((tool_call_id, done, text)),
            _ => None,
        };
        emitter.pending().into_iter().filter_map(|event| of(event.kind)).collect()
    }

    fn step(done: f64, text: &str) -> Step {
        Step { done: Some(done), total: None, text: text.to_owned() }
    }

    #[test]
    fn steps_that_come_too_fast_are_passed_over() {
        let (steps, emitter) = steps(&Config { progress_ms: 3_600_000, ..Config::default() }, Secrets::default());
        for done in 0..100 {
            steps.watch("one", step(f64::from(done), "x"));
        }
        steps.watch("two", step(7.0, "y"));
        let expected = [("one".to_owned(), Some(0.0), "x".to_owned()), ("two".to_owned(), Some(7.0), "y".to_owned())];
        assert_eq!(told(&emitter), expected);
    }

    #[test]
    fn a_call_has_only_so_many_and_none_twice() {
        for (most, expected) in [(3, &[1.0, 2.0, 3.0][..]), (1, &[1.0]), (0, &[])] {
            let config = Config { progress_ms: 0, progress_events: most, ..Config::default() };
            let (steps, emitter) = steps(&config, Secrets::default());
            for done in [1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 5.0] {
                steps.watch("one", step(done, "x"));
            }
            let done: Vec<_> = told(&emitter).into_iter().map(|(_, done, _)| done.unwrap_or_default()).collect();
            assert_eq!(done, expected, "at most {most}");
        }
    }

    #[test]
    fn what_is_told_is_masked_before_it_is_cut() {
        let secrets = Secrets::default();
        secrets.add(["hunter2-hunter2".to_owned()]);
        let config = Config { progress_ms: 0, progress_characters: 20, ..Config::default() };
        let (steps, emitter) = steps(&config, secrets);
        steps.watch("one", step(f64::NAN, "logs in\r\n\u{1b} with hunter2-hunter2 and more"));
        steps.watch("two", step(0.0, &"é".repeat(100_000)));
        let told = told(&emitter);
        assert_eq!(told[0].1, None);
        assert!(told[0].2.starts_with("logs in with ") && !told[0].2.contains("hunter2"), "{told:?}");
        assert_eq!((told[0].2.chars().count(), told[1].2.chars().count()), (20, 20));
    }

    #[test]
    fn a_program_that_only_says_what_it_would_do_tells_no_steps() {
        let emitter = Emitter::detached();
        let teller = Teller::new(emitter.clone(), &[]).quiet();
        Steps::new(teller, Secrets::default(), &Config::default()).watch("one", step(1.0, "x"));
        assert!(told(&emitter).is_empty());
    }
}
