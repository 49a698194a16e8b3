//! A look at a round's process from outside, while it runs. It changes nothing.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// The kernel's `PF_EXITING` among the flags of a process, field 9 of `proc_pid_stat(5)`.
const EXITING: u64 = 4;

/// The process that a program runs in. Clones look at the same one; keeping it does not keep the process.
#[derive(Debug, Clone)]
pub struct Process {
    descriptor: Arc<OwnedFd>,
}

/// What a process uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vitals {
    /// Its id, as this process sees it.
    pub pid: u32,
    /// CPU time so far, user and system, in steps of the kernel's clock tick (10 ms).
    pub cpu: Duration,
    /// Resident memory in KiB, what it shares with its zygote included.
    pub memory_kib: u64,
}

impl Process {
    /// The process of a pidfd.
    pub(super) fn new(descriptor: Arc<OwnedFd>) -> Self {
        Self { descriptor }
    }

    /// What it uses now; `None` once it has ended, or where `/proc` hides it.
    pub fn look(&self) -> Option<Vitals> {
        let pid = self.pid()?;
        let vitals = vitals(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
        // If it was reaped meanwhile, the number may have been another one's.
        (self.pid()? == pid).then_some(vitals)
    }

    /// How long its main thread has waited for a processor so far; `None` as for [`look`](Self::look), or where the kernel does
    /// not count it.
    pub(super) fn waited(&self) -> Option<Duration> {
        // `/proc/PID/schedstat`, of the kernel's `sched-stats` document: time on a processor, time waiting for one (ns), turns.
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.pid()?)).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
    }

    /// CPU time of all its threads so far, user and system, to the nanosecond; `None` once it was reaped.
    pub(super) fn cpu(&self) -> Option<Duration> {
        let pid = self.pid()?;
        let mut clock = 0;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: both pointers are to live values.
        let known = unsafe {
            libc::clock_getcpuclockid(libc::pid_t::try_from(pid).ok()?, &raw mut clock) == 0
                && libc::clock_gettime(clock, &raw mut time) == 0
        };
        let cpu = Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
        // If it was reaped meanwhile, the number may have been another one's.
        (known && self.pid()? == pid).then_some(cpu)
    }

    /// True once it is on its way out, which closes its descriptors, or where that cannot be seen.
    pub(super) fn is_exiting(&self) -> bool {
        let flags = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid()?)).ok()?;
            stat.rsplit_once(") ")?.1.split(' ').nth(6)?.parse::<u64>().ok()
        };
        flags().is_none_or(|flags| flags & EXITING != 0)
    }

    /// Its id, as this process sees it; `None` once it was reaped.
    pub(super) fn pid(&self) -> Option<u32> {
        // `pidfd_open(2)` names the fields: `Pid:` is -1 once the process was reaped.
        let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", self.descriptor.as_raw_fd())).ok()?;
        let field = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
        field.trim().parse().ok().filter(|pid| *pid > 0)
    }
}

/// Reads the fields of `proc_pid_stat(5)` behind the name, which may hold anything.
fn vitals(pid: u32, stat: &str) -> Option<Vitals> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    // The manual counts from 1, and the first one here is its third.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let (user, system, pages) = (field(14)?, field(15)?, field(24)?);
    // SAFETY: plain questions about constants of the system.
    let (ticks, page) = unsafe { (libc::sysconf(libc::_SC_CLK_TCK), libc::sysconf(libc::_SC_PAGESIZE)) };
    let ticks = u64::try_from(ticks).ok().filter(|ticks| *ticks > 0)?;
    let cpu = Duration::from_millis((user + system).saturating_mul(1_000) / ticks);
    Some(Vitals { pid, cpu, memory_kib: pages.saturating_mul(u64::try_from(page).ok()?) / 1_024 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_brackets_does_not_shift_the_fields() {
        let stat = "7 (a) b ( c) S 1 7 7 0 -1 4194560 999 0 0 0 130 25 0 0 20 0 1 0 5 1000 300 184 0";
        let expected = Vitals { pid: 7, cpu: Duration::from_millis(1_550), memory_kib: 1_200 };
        assert_eq!(vitals(7, stat), Some(expected));
    }

    #[test]
    fn an_unreadable_line_is_no_process() {
        assert_eq!(vitals(7, "7 (python) S 1 7"), None);
    }
}
