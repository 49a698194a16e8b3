//! Who belongs to a command: its group, its descendants, and whoever carries its mark.
//!
//! A process that makes a session of its own leaves the group, and one whose parent ended is nobody's descendant any
//! more; the mark in the environment finds both.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

/// How often it is looked for those that were started meanwhile.
const ROUNDS: u32 = 50;

/// Kills the leader's group and everybody who belongs to it. The leader must not have been reaped: then its id, which is
/// also the group's, would be free for somebody else.
pub(crate) fn kill(leader: Pid, mark: &str) {
    for _ in 0..ROUNDS {
        // Before the group is killed: a dead parent's children are nobody's.
        let members = members(leader, mark);
        // The only failure is that there is nobody left to kill.
        let _ = kill_process_group(leader, Signal::KILL);
        let killed = members.iter().filter(|process| process.kill()).count();
        if killed == 0 {
            return;
        }
    }
}

/// Living processes that belong to the leader, without itself.
fn members(leader: Pid, mark: &str) -> Vec<Process> {
    let leader = leader.as_raw_nonzero().get();
    let mut processes = processes();
    let mut ids = BTreeSet::from([leader]);
    ids.extend(processes.iter().filter(|process| carries(process.id, mark)).map(|process| process.id));
    loop {
        let children = processes.iter().filter(|process| ids.contains(&process.parent) && !ids.contains(&process.id));
        let children: Vec<i32> = children.map(|process| process.id).collect();
        if children.is_empty() {
            break;
        }
        ids.extend(children);
    }
    processes.retain(|process| process.is_alive && process.id != leader && ids.contains(&process.id));
    processes
}

struct Process {
    id: i32,
    parent: i32,
    /// In clock ticks since the machine started; with the id it means one process only.
    started: u64,
    is_alive: bool,
}

impl Process {
    fn read(id: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name stands in brackets and may hold anything, brackets too.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let is_alive = !matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        // State and parent are the third and the fourth field, the start is the 22nd.
        Some(Self { id, parent, started: fields.nth(17)?.parse().ok()?, is_alive })
    }

    /// False if it had ended, or its id is somebody else's by now.
    fn kill(&self) -> bool {
        let handle = Pid::from_raw(self.id).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        // Looked at again behind the handle: what has the same start is the process that the handle means.
        let is_same = |now: Self| now.started == self.started && now.is_alive;
        handle.is_some_and(|handle| {
            Self::read(self.id).is_some_and(is_same) && pidfd_send_signal(handle, Signal::KILL).is_ok()
        })
    }
}

fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter_map(Process::read).collect()
}

/// False too where another user's environment cannot be read; that process could not be killed either.
fn carries(id: i32, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}
