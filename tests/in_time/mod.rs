//! Processes that are waited for, and not for ever: one that hangs fails its test.

use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long any of the processes may take. None of them has a reason to take a tenth of it.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Waits for the end of a process. One that hangs has not survived.
pub fn ended(child: Child) -> Output {
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    receiver.recv_timeout(DEADLINE).map(Result::unwrap).unwrap_or_else(|_| {
        let _ = kill(id, Signal::SIGKILL);
        panic!("a process hangs: {:?}", receiver.recv())
    })
}

/// Runs a command to its end.
pub fn in_time(command: &mut Command) -> Output {
    ended(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}
