//! How a round ended, judged from outside: by what the host did, by the process's end, and only then by what the child
//! said. The sentences are for the model.

use nix::sys::signal::Signal;

use super::control::Exit;
use super::done::DoneEnding;
use super::{Ending, Limits};

/// Why the host stopped a program.
#[derive(Debug)]
pub(super) enum Stop {
    /// A limit by its name.
    Limit(&'static str),
    Cancelled,
    /// It broke the protocol; what it sent.
    Nonsense(String),
}

/// What the host saw of a round.
#[derive(Debug, Default)]
pub(super) struct Seen<'a> {
    /// Why the host stopped it, if it did.
    pub stop: Option<Stop>,
    /// What the child said at its end, if its process ended well.
    pub done: Option<&'a DoneEnding>,
    /// True if it said anything at all at its end.
    pub said_its_end: bool,
    /// True if it lost its socket and went on.
    pub lost_socket: bool,
    /// The process's end, unless its zygote ended with it.
    pub exit: Option<Exit>,
    /// Statements that were done, and how many there are; 0 as long as none was done.
    pub statements: (u32, u32),
}

impl Seen<'_> {
    /// How far a program came that had no last words, and what that means.
    fn cut_off(&self) -> String {
        let place = match self.statements {
            (_, 0) => "in statement 1".to_owned(),
            (done, of) if done >= of => format!("after statement {of} of {of}"),
            (done, of) => format!("in statement {} of {of}", done + 1),
        };
        format!(" ({place}); nothing that it assigned was kept")
    }
}

/// The ending.
pub(super) fn decide(seen: &Seen<'_>, limits: &Limits) -> Ending {
    match (&seen.stop, seen.done) {
        (Some(Stop::Cancelled), _) => Ending::Cancelled,
        (Some(Stop::Limit(limit)), Some(DoneEnding::Limit { message, .. })) => reached(limit, limits, place(message)),
        // It ended by itself meanwhile, with all that it had.
        (Some(Stop::Limit(limit)), Some(_)) => reached(limit, limits, ""),
        (Some(Stop::Limit(limit)), None) => reached(limit, limits, &seen.cut_off()),
        (Some(Stop::Nonsense(what)), _) => Ending::Crashed {
            message: format!(
                "the program's process sent {what} to the host and was stopped; descriptor 3 belongs to the runtime, do not \
                 write to it"
            ),
        },
        (None, Some(DoneEnding::Returned { value })) => Ending::Returned { value: value.clone() },
        (None, Some(DoneEnding::Raised { traceback, exception, statement, line })) => Ending::Raised {
            traceback: traceback.clone(),
            exception: exception.clone(),
            statement: *statement,
            line: *line,
        },
        (None, Some(DoneEnding::Limit { limit, message })) => {
            let known =
                ["wall", "cpu", "memory", "output", "calls", "scratch"].into_iter().find(|known| known == limit);
            reached(known.unwrap_or("wall"), limits, place(message))
        }
        (None, None) => died(seen, limits),
    }
}

/// The exit code of a child that cannot reach the host any more.
const HOST_GONE: i32 = 3;

/// The ending of a process that ended without a final frame, or not as one that has said it.
fn died(seen: &Seen<'_>, limits: &Limits) -> Ending {
    let Some(Exit { code, signal, cpu_us, peak_rss_kib }) = seen.exit else {
        return Ending::Lost {
            message: "the program's process was lost together with the interpreter; run the program again".to_owned(),
        };
    };
    let signal = signal.and_then(|signal| Signal::try_from(signal).ok());
    let used_up = cpu_us >= limits.cpu_s.saturating_mul(1_000_000);
    let how = match code {
        Some(code) => format!("exited with code {code} before the program's end"),
        None => format!("was ended by {}", signal.map_or("a signal", Signal::as_str)),
    };
    let advice = match (code, signal) {
        _ if seen.lost_socket => {
            "it had closed or replaced descriptor 3, which belongs to the runtime; leave descriptors alone that the program \
             did not open"
        }
        // What it said went elsewhere, so that it ended as if all were well, or it saw that it cannot reach the host.
        (Some(0 | HOST_GONE), _) => {
            "it called `os._exit`, or closed or replaced descriptor 3, which belongs to the runtime; do neither, and end a \
             program early with `return` in a function or an exception"
        }
        (Some(_), _) => "do not call `os._exit`, and end a program early with `return` in a function or an exception",
        (None, Some(Signal::SIGXCPU)) => return reached("cpu", limits, &seen.cut_off()),
        (None, Some(Signal::SIGKILL)) if used_up => return reached("cpu", limits, &seen.cut_off()),
        (None, Some(Signal::SIGKILL)) if seen.said_its_end => {
            "it said that it was at its end and went on; descriptor 3 belongs to the runtime, do not write to it"
        }
        (None, Some(Signal::SIGKILL)) if peak_rss_kib >= limits.memory_mib.saturating_mul(1024) / 10 * 9 => {
            return reached("memory", limits, &seen.cut_off());
        }
        (None, Some(Signal::SIGKILL)) => {
            "the program sent it to itself, or there was no more memory for all programs together; work on smaller pieces"
        }
        (None, Some(Signal::SIGSYS)) => "it asked the kernel for what programs may not do; call a toolkit for that",
        (None, Some(Signal::SIGSEGV | Signal::SIGBUS | Signal::SIGABRT | Signal::SIGFPE | Signal::SIGILL) | None) => {
            "this is a crash in compiled code, e.g. through `ctypes` or very deep recursion"
        }
        (None, Some(_)) => {
            "the program sent that signal to itself or asked for it; end a program early with `return` in a function or an \
             exception"
        }
    };
    Ending::Crashed { message: format!("the program's process {how}, and nothing was kept; {advice}") }
}

/// Where a program was when it was told to stop, by its own account.
fn place(message: &str) -> &str {
    let place = message.rfind(" (at line ").and_then(|start| message.get(start..)).unwrap_or_default();
    if place.len() <= 80 { place } else { "" }
}

fn reached(limit: &'static str, limits: &Limits, rest: &str) -> Ending {
    let mut message = match limit {
        "cpu" => format!(
            "the program used more than {} s of CPU time and was stopped; do less at once, or raise interpreter.limits.cpu_s",
            limits.cpu_s
        ),
        "memory" => format!(
            "the program used more than {} MiB of memory and was stopped; work on smaller pieces, or raise \
             interpreter.limits.memory_mib",
            limits.memory_mib
        ),
        "output" => format!(
            "the program printed far more than {} KiB and was stopped; print a summary, or raise interpreter.limits.output_kib",
            limits.output_kib
        ),
        "calls" => format!(
            "the program made more than {} calls and was stopped; ask for more with each call, or raise \
             interpreter.limits.calls",
            limits.calls
        ),
        "scratch" => format!(
            "the program's files took more than {} MiB, or were too many or too deep, and it was stopped; remove what is not \
             needed, keep data in variables, or raise interpreter.limits.scratch_mib",
            limits.scratch_mib
        ),
        _ => format!(
            "the program ran longer than {} s and was stopped; split the work or raise interpreter.limits.wall_s",
            limits.wall_s
        ),
    };
    message.push_str(rest);
    Ending::Limit { limit, message }
}
