//! What runs, who runs it and what it uses.

use fimble_toolkit::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sysinfo::{MINIMUM_CPU_UPDATE_INTERVAL, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, UpdateKind, Users};

use crate::resources::{observer, rfc3339, rounded, unavailable};

/// Longest command line in characters.
const COMMAND_CHARACTERS: usize = 200;

/// Some processes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Processes {
    /// Those that use most first.
    pub processes: Vec<Process>,
    /// How many there are of what was asked for.
    pub total: u64,
    /// True if there are more than were asked for.
    pub truncated: bool,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its short name.
    pub name: String,
    /// Its command line, cut to 200 characters, with values that look like secrets hidden.
    pub command: String,
    /// Whose it is; a number if the user has no name.
    pub user: String,
    /// Processor time now; 100 is one whole processor.
    pub cpu_percent: f64,
    /// Resident memory.
    pub memory_bytes: u64,
    /// `running`, `sleeping`, `idle`, `waiting_for_disk`, `stopped`, `zombie` or `other`.
    pub state: String,
    /// When it started, RFC 3339 in UTC.
    pub started: String,
    /// The number of the process that started it.
    pub parent_pid: Option<u32>,
}

/// What the first processes use most of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SortBy {
    /// Processor time.
    Cpu,
    /// Resident memory.
    Memory,
}

pub(crate) fn processes(limit: u32, sort_by: SortBy, name: Option<&str>) -> Result<Processes, ToolError> {
    if !(1..=1_000).contains(&limit) {
        return Err(ToolError::invalid_argument(format!("`limit` is from 1 to 1000, not {limit}")));
    }
    let mut system = observer()?;
    let kind = ProcessRefreshKind::nothing()
        .with_cpu()
        .with_memory()
        .with_user(UpdateKind::OnlyIfNotSet)
        .with_cmd(UpdateKind::OnlyIfNotSet)
        .without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
    // Processor time is what changes between two looks.
    std::thread::sleep(MINIMUM_CPU_UPDATE_INTERVAL);
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
    let users = Users::new_with_refreshed_list().map_err(unavailable)?;
    let wanted = name.map(str::to_lowercase);
    let mut processes: Vec<Process> = system
        .processes()
        .values()
        .map(|process| describe(process, &users))
        .filter(|process| {
            wanted.as_ref().is_none_or(|wanted| {
                process.name.to_lowercase().contains(wanted) || process.command.to_lowercase().contains(wanted)
            })
        })
        .collect();
    processes.sort_by(|left, right| {
        let by_cpu = right.cpu_percent.total_cmp(&left.cpu_percent);
        let by_memory = right.memory_bytes.cmp(&left.memory_bytes);
        match sort_by {
            SortBy::Cpu => by_cpu.then(by_memory),
            SortBy::Memory => by_memory.then(by_cpu),
        }
        .then(left.pid.cmp(&right.pid))
    });
    let total = processes.len();
    processes.truncate(limit as usize);
    Ok(Processes { truncated: processes.len() < total, processes, total: total as u64 })
}

fn describe(process: &sysinfo::Process, users: &Users) -> Process {
    let arguments: Vec<String> = process.cmd().iter().map(|part| part.display().to_string()).collect();
    let user = process
        .user_id()
        .map(|id| users.get_user_by_id(id).map_or_else(|| id.to_string(), |user| user.name().to_owned()));
    Process {
        pid: process.pid().as_u32(),
        name: process.name().display().to_string(),
        command: command_line(&arguments),
        user: user.unwrap_or_default(),
        cpu_percent: rounded(process.cpu_usage().into()),
        memory_bytes: process.memory(),
        state: state(process.status()).to_owned(),
        started: rfc3339(process.start_time()),
        parent_pid: process.parent().map(sysinfo::Pid::as_u32),
    }
}

/// The arguments joined and cut. What follows a word that announces a secret is hidden.
fn command_line(arguments: &[String]) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut hide = false;
    for argument in arguments {
        let name = argument.split('=').next().unwrap_or_default();
        let announces = ["password", "passwd", "token", "secret", "api-key", "api_key", "apikey"]
            .iter()
            .any(|word| name.to_ascii_lowercase().contains(word));
        shown.push(match (hide, announces && argument.contains('=')) {
            (true, _) => "***".to_owned(),
            (false, true) => format!("{name}=***"),
            (false, false) => argument.clone(),
        });
        hide = !hide && announces && argument.starts_with('-') && !argument.contains('=');
    }
    let line = shown.join(" ");
    if line.chars().count() <= COMMAND_CHARACTERS {
        return line;
    }
    line.chars().take(COMMAND_CHARACTERS - 1).chain(['…']).collect()
}

fn state(status: ProcessStatus) -> &'static str {
    match status {
        ProcessStatus::Run => "running",
        ProcessStatus::Sleep => "sleeping",
        ProcessStatus::Idle | ProcessStatus::Parked => "idle",
        ProcessStatus::UninterruptibleDiskSleep => "waiting_for_disk",
        ProcessStatus::Stop | ProcessStatus::Tracing => "stopped",
        ProcessStatus::Zombie => "zombie",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_hide_secrets_and_are_cut() {
        let line =
            |arguments: &[&str]| command_line(&arguments.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(line(&["mysql", "--password=hunter2", "-u", "ada"]), "mysql --password=*** -u ada");
        assert_eq!(line(&["x", "--api-key", "k", "--token", "t", "y"]), "x --api-key *** --token *** y");
        assert_eq!(line(&["env", "DB_PASSWORD=p", "run"]), "env DB_PASSWORD=*** run");
        assert_eq!(line(&["cat", "tokens.txt"]), "cat tokens.txt");
        let long = line(&["é".repeat(300).as_str()]);
        assert_eq!((long.chars().count(), long.ends_with('…')), (200, true));
    }
}
