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

/// The ending. `done` is what the child said, if its process ended well.
pub(super) fn decide(stop: Option<Stop>, done: Option<&DoneEnding>, exit: Option<Exit>, limits: &Limits) -> Ending {
    match (stop, done) {
        (Some(Stop::Cancelled), _) => Ending::Cancelled,
        (Some(Stop::Limit(limit)), Some(DoneEnding::Limit { message, .. })) => reached(limit, limits, place(message)),
        (Some(Stop::Limit(limit)), _) => reached(limit, limits, ""),
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
        (None, None) => died(exit, limits),
    }
}

/// The ending of a process that ended without a final frame.
fn died(exit: Option<Exit>, limits: &Limits) -> Ending {
    let Some(Exit { code, signal, cpu_us, peak_rss_kib }) = exit else {
        return Ending::Lost {
            message: "the program's process was lost together with the interpreter; run the program again".to_owned(),
        };
    };
    if let Some(code) = code {
        return Ending::Crashed {
            message: format!(
                "the program's process exited with code {code} before the program's end, and nothing was kept; do not call \
                 `os._exit`, and end a program early with `return` in a function or an exception"
            ),
        };
    }
    let signal = signal.and_then(|signal| Signal::try_from(signal).ok());
    let used_up = cpu_us >= limits.cpu_s.saturating_mul(1_000_000);
    match signal {
        Some(Signal::SIGXCPU) => reached("cpu", limits, ""),
        Some(Signal::SIGKILL) if used_up => reached("cpu", limits, ""),
        Some(Signal::SIGKILL) if peak_rss_kib >= limits.memory_mib.saturating_mul(1024) / 10 * 9 => {
            reached("memory", limits, "")
        }
        signal => Ending::Crashed {
            message: format!(
                "the program's process was ended by {}, and nothing was kept; this is a crash in compiled code, e.g. through \
                 `ctypes` or very deep recursion",
                signal.map_or("a signal", Signal::as_str)
            ),
        },
    }
}

/// Where a program was when it was told to stop, by its own account.
fn place(message: &str) -> &str {
    let place = message.rfind(" (at line ").and_then(|start| message.get(start..)).unwrap_or_default();
    if place.len() <= 80 { place } else { "" }
}

fn reached(limit: &'static str, limits: &Limits, place: &str) -> Ending {
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
    message.push_str(place);
    Ending::Limit { limit, message }
}
