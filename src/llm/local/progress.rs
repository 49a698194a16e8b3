//! Shows long steps on standard error: a bar on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};

use super::Step;

/// What shows the steps of one command. On a pipe it says each tenth of a download and nothing about each second.
pub fn on_stderr() -> impl FnMut(Step) + Send {
    let is_terminal = std::io::stderr().is_terminal();
    let mut bar: Option<ProgressBar> = None;
    let mut told = None;
    move |step| match step {
        Step::Note(text) => {
            clear(&mut bar);
            note(&text);
        }
        Step::Bytes { done, total } if is_terminal => {
            let bar = bar.get_or_insert_with(|| byte_bar(total));
            bar.set_position(done);
            if done == total {
                bar.finish();
            }
        }
        Step::Bytes { done, total } => {
            let tenth = done.saturating_mul(10) / total.max(1);
            if told.replace(tenth) != Some(tenth) {
                note(&format!("fetched {} of {} MB", done / 1_000_000, total / 1_000_000));
            }
        }
        Step::Loading { elapsed } => {
            let text = format!("loading the model … {} s", elapsed.as_secs());
            if is_terminal {
                bar.get_or_insert_with(spinner).set_message(text);
            } else if told.replace(0).is_none() {
                note("loading the model …");
            }
        }
        Step::Loaded => clear(&mut bar),
    }
}

/// A line for a reader that may be gone.
fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn clear(bar: &mut Option<ProgressBar>) {
    if let Some(bar) = bar.take() {
        bar.finish_and_clear();
    }
}

fn byte_bar(total: u64) -> ProgressBar {
    let template = "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    ProgressBar::new(total).with_style(style(template))
}

fn spinner() -> ProgressBar {
    ProgressBar::new_spinner().with_style(style("{spinner} {msg}"))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
