//! The person at the terminal, who approves and answers. One question after the other, and an answer that is no longer
//! waited for is not read: the next question or the line editor gets it.

use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use fimble_toolkit::Answers;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Mutex, oneshot};

use super::output::clean;
use super::show::clip;
use crate::gate::{ALWAYS, Approval, Attendant, Consent, Plan, PlanConsent};

/// Characters of a call's arguments that an approval shows.
const APPROVAL_CHARACTERS: usize = 500;

/// Bytes of one line; a terminal gives no longer ones.
const LINE_BYTES: usize = 64 * 1024;

/// Something to ask on the screen.
#[derive(Debug)]
pub(super) struct Inquiry {
    /// The question.
    pub(super) text: String,
    /// What stands before the answer.
    pub(super) mark: &'static str,
    /// True if keys pressed before the question is shown are no answer to it.
    pub(super) forget_typed: bool,
    /// Told when it is shown. Closed if nobody waits for the answer any more.
    pub(super) shown: oneshot::Sender<()>,
    /// Closed when it is answered, or nobody waits for the answer any more.
    pub(super) over: oneshot::Receiver<()>,
}

/// The person at the terminal, or nobody.
#[derive(Debug)]
pub(super) struct Person {
    screen: Option<UnboundedSender<Inquiry>>,
    /// The screen's own: true while its cursor stands in the middle of a line.
    midline: Arc<AtomicBool>,
    /// Held from a question to its answer, so that no answer reaches another question.
    floor: Mutex<()>,
}

/// True if somebody can be asked: standard input and standard error are terminals.
pub(super) fn is_present() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

impl Person {
    /// Somebody who sees what is sent to `screen`; nobody if it is `None`.
    pub(super) fn before(screen: Option<UnboundedSender<Inquiry>>, midline: Arc<AtomicBool>) -> Self {
        Self { screen, midline, floor: Mutex::new(()) }
    }

    /// The answer to a question; `None` if nobody is there or the input ended. Dropping it stops the reading.
    async fn ask(&self, text: String, mark: &'static str, forget_typed: bool) -> Option<String> {
        let screen = self.screen.as_ref()?;
        let _floor = self.floor.lock().await;
        let (shown, is_shown) = oneshot::channel();
        // Dropped with this future, whichever way it ends.
        let (_open, over) = oneshot::channel();
        screen.send(Inquiry { text, mark, forget_typed, shown, over }).ok()?;
        is_shown.await.ok()?;
        let line = read_line().await?;
        // The terminal echoed the end of the line.
        self.midline.store(false, Ordering::Relaxed);
        Some(line)
    }
}

#[async_trait]
impl Attendant for Person {
    async fn approve(&self, request: &Approval) -> Option<Consent> {
        let mut text = approval_text(request);
        loop {
            let answer = self.ask(text, "[y/N/always/?] ", true).await?;
            text = match request.read(&answer) {
                Ok(consent) => return Some(consent),
                Err(_) if answer == "?" => format!("yes, no, {ALWAYS}"),
                // Something longer was meant; everything else is a no.
                Err(reason) if answer.to_lowercase().starts_with("always") => reason,
                Err(_) => return Some(Consent::No),
            };
        }
    }

    async fn approve_plan(&self, plan: &Plan) -> Option<String> {
        let mut plan = plan.clone();
        // The plan itself stands above.
        let mut text = format!("May this be done? {}", plan.title());
        loop {
            let answer = self.ask(text, "[y/N/numbers to strike out] ", true).await?;
            let is_numbers = answer.starts_with(|first: char| first.is_ascii_digit());
            let said = if is_numbers { format!("strike {answer}") } else { answer.to_lowercase() };
            text = match plan.read(&said) {
                // What is struck out is looked at before it is approved.
                Ok(PlanConsent::Yes(struck)) if said.starts_with("strike") => {
                    plan = struck;
                    format!("May this be done? {}", clean(&plan.text()))
                }
                Ok(PlanConsent::Yes(plan)) => return Some(plan.approving_words()),
                Err(reason) if said.starts_with("strike") => reason,
                Ok(PlanConsent::No) | Err(_) => return Some("no".to_owned()),
            };
        }
    }

    async fn answer(&self, question: &str, choices: &[String]) -> Option<String> {
        let answer = self.ask(question_text(question, choices), "› ", false).await?;
        // A number picks a choice; anything else is the answer itself.
        let picked = answer.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
        Some(picked.cloned().unwrap_or(answer))
    }
}

/// A toolkit that is called by hand may ask in the middle of its call.
#[async_trait]
impl Answers for Person {
    async fn answer(&self, question: &str, choices: &[String]) -> Option<String> {
        Attendant::answer(self, question, choices).await
    }
}

/// A question with its choices.
pub(super) fn question_text(question: &str, choices: &[String]) -> String {
    let choices = if choices.is_empty() { String::new() } else { format!(" [{}]", choices.join(" / ")) };
    format!("{question}{choices}")
}

fn approval_text(request: &Approval) -> String {
    let arguments = clean(&request.arguments);
    let hidden = arguments.chars().count().saturating_sub(APPROVAL_CHARACTERS);
    let hidden = if hidden == 0 { String::new() } else { format!("\n({hidden} more characters are not shown)") };
    let reason = request.reason.as_ref().map_or(String::new(), |reason| format!("\n{}", clean(reason)));
    format!(
        "May this {} operation be called? {}({}){hidden}{reason}",
        request.risk,
        request.operation,
        clip(&arguments, APPROVAL_CHARACTERS)
    )
}

/// One line of standard input. Nothing reads once this is dropped: the wait is for readiness, and a terminal that is
/// ready has a whole line.
async fn read_line() -> Option<String> {
    let input = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
    // SAFETY: the `File` owns the descriptor, and nothing replaces or closes it before the `AsyncFd` is dropped.
    let input = unsafe { AsyncFd::register_with_interest(File::from(input), Interest::READABLE) }.ok()?;
    let mut line = Vec::new();
    while line.len() < LINE_BYTES && !line.ends_with(b"\n") {
        let mut ready = input.readable().await.ok()?;
        // What made it ready may be gone, and a read that waits would hold the thread.
        if !has_input(input.get_ref().as_fd()) {
            ready.clear_ready();
            continue;
        }
        let mut bytes = [0; 4096];
        match (&mut input.get_ref()).read(&mut bytes) {
            Ok(0) if line.is_empty() => return None,
            Ok(0) => break,
            Ok(count) => line.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(String::from_utf8_lossy(&line).trim().to_owned())
}

fn has_input(input: impl AsFd) -> bool {
    let mut polled = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approval(arguments: &str) -> String {
        let operation = "git_toolkit.commit".to_owned();
        approval_text(&Approval {
            operation,
            arguments: arguments.to_owned(),
            risk: fimble_toolkit::Risk::Write,
            reason: None,
            bound: serde_json::Map::new(),
            is_grave: false,
        })
    }

    #[test]
    fn an_approval_shows_the_whole_call() {
        let expected = "May this write operation be called? git_toolkit.commit({\"message\":\"one\"})";
        assert_eq!(approval("{\"message\":\"\u{202e}one\u{1b}\"}"), expected);
    }

    #[test]
    fn an_approval_says_how_much_of_the_arguments_it_hides() {
        let expected = format!(
            "May this write operation be called? git_toolkit.commit({}…)\n(3 more characters are not shown)",
            "é".repeat(500)
        );
        assert_eq!(approval(&"é".repeat(503)), expected);
    }
}
