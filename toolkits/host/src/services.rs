//! What systemd runs, asked with `systemctl`.

use std::io;
use std::path::Path;
use std::process::Stdio;

use fimble_toolkit::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// Most services in one result.
const SERVICES: usize = 1_000;
/// The most bytes of an answer of `systemctl`; a thousand units take a quarter of a megabyte.
const ANSWER_BYTES: u64 = 16 * 1024 * 1024;
/// The most bytes of its complaint that are shown.
const COMPLAINT_BYTES: u64 = 4 * 1024;
/// There where systemd is the machine's first process.
const SYSTEMD_RUNS: &str = "/run/systemd/system";

/// Services.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Services {
    /// By name; at most 1000.
    pub services: Vec<Service>,
    /// True if there are more.
    pub truncated: bool,
}

/// A service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Service {
    /// The unit's name, e.g. `nginx.service`.
    pub name: String,
    /// `active`, `inactive`, `failed`, `activating` or `deactivating`.
    pub state: String,
    /// The finer state, e.g. `running`, `exited`, `dead`.
    pub sub_state: String,
    /// Whether its unit file could be read: `loaded`, `not-found`, `masked` or `error`.
    pub loaded: String,
    /// What it is.
    pub description: String,
}

/// The services in a state, by a part of their name.
pub(crate) async fn services(state: Option<&str>, name: Option<&str>) -> Result<Services, ToolError> {
    require_systemd(Path::new(SYSTEMD_RUNS))?;
    let mut command = Command::new("systemctl");
    command.args(["list-units", "--type=service", "--all", "--no-pager", "--output=json"]).env("LC_ALL", "C");
    Ok(chosen(parse(&answer(command, ANSWER_BYTES).await?)?, state, name))
}

/// What a command writes, `most` bytes of it at most.
async fn answer(mut command: Command, most: u64) -> Result<Vec<u8>, ToolError> {
    let failed = |error: io::Error| ToolError::unavailable(format!("`systemctl` cannot be run: {error}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(failed)?;
    let (answer, said) = (child.stdout.take(), child.stderr.take());
    // Past its limit, each pipe is closed: the command ends by that, or is killed with its handle.
    let (answer, said) = tokio::join!(read(answer, most + 1), read(said, COMPLAINT_BYTES));
    let (answer, said) = (answer.map_err(failed)?, said.map_err(failed)?);
    if answer.len() as u64 > most {
        return Err(ToolError::failed(format!("`systemctl` answered more than {} MiB", most / 1024 / 1024))
            .with_hint("ask for one service with the systemd toolkit, if it is there"));
    }
    if !child.wait().await.map_err(failed)?.success() {
        return Err(ToolError::failed(format!("`systemctl` failed: {}", String::from_utf8_lossy(&said).trim())));
    }
    Ok(answer)
}

async fn read(pipe: Option<impl AsyncRead + Unpin>, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(most).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// One unit as `systemctl` writes it.
#[derive(Deserialize)]
struct Unit {
    unit: String,
    load: String,
    active: String,
    sub: String,
    description: String,
}

fn require_systemd(marker: &Path) -> Result<(), ToolError> {
    if marker.is_dir() {
        return Ok(());
    }
    Err(ToolError::unavailable("systemd does not run on this machine, so there is no list of services")
        .with_hint("look for the service's process with processes(name=…) or its port with listening_ports()"))
}

fn parse(output: &[u8]) -> Result<Vec<Service>, ToolError> {
    let units: Vec<Unit> = serde_json::from_slice(output)
        .map_err(|error| ToolError::failed(format!("`systemctl` answered in another form: {error}")))?;
    let service = |Unit { unit, load, active, sub, description }| Service {
        name: unit,
        state: active,
        sub_state: sub,
        loaded: load,
        description,
    };
    Ok(units.into_iter().map(service).collect())
}

fn chosen(mut services: Vec<Service>, state: Option<&str>, name: Option<&str>) -> Services {
    services.retain(|service| {
        state.is_none_or(|state| service.state == state || service.sub_state == state)
            && name.is_none_or(|name| service.name.contains(name))
    });
    services.sort_by(|left, right| left.name.cmp(&right.name));
    let total = services.len();
    services.truncate(SERVICES);
    Services { truncated: services.len() < total, services }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = r#"[
        {"unit":"ssh.service","load":"loaded","active":"active","sub":"running","description":"OpenBSD Secure Shell"},
        {"unit":"backup.service","load":"loaded","active":"failed","sub":"failed","description":"Nightly backup"},
        {"unit":"gone.service","load":"not-found","active":"inactive","sub":"dead","description":"gone.service"}
    ]"#;

    #[test]
    fn services_are_chosen_by_state_and_name() {
        let names = |state, name| {
            let services = chosen(parse(OUTPUT.as_bytes()).unwrap(), state, name).services;
            services.into_iter().map(|service| service.name).collect::<Vec<_>>()
        };
        assert_eq!(names(None, None), ["backup.service", "gone.service", "ssh.service"]);
        assert_eq!(names(Some("failed"), None), ["backup.service"]);
        assert_eq!(names(Some("running"), None), ["ssh.service"]);
        assert_eq!(names(None, Some("ssh")), ["ssh.service"]);
        let backup = Service {
            name: "backup.service".into(),
            state: "failed".into(),
            sub_state: "failed".into(),
            loaded: "loaded".into(),
            description: "Nightly backup".into(),
        };
        let services = chosen(parse(OUTPUT.as_bytes()).unwrap(), Some("failed"), None);
        assert_eq!(services, Services { services: vec![backup], truncated: false });
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn an_answer_without_end_is_an_error_and_its_process_ends() {
        let error = answer(shell("echo $$; exec yes"), 1024 * 1024).await.unwrap_err();
        assert_eq!(error.message, "`systemctl` answered more than 1 MiB");
        assert_eq!(answer(shell("yes | head -c 1000"), 1000).await.unwrap().len(), 1000);
        let error = answer(shell("yes no | head -c 100000 >&2; exit 3"), 1000).await.unwrap_err();
        assert!(error.message.starts_with("`systemctl` failed: no\nno") && error.message.len() < 5_000, "{error}");
        let error = answer(Command::new("/nowhere/systemctl"), 1000).await.unwrap_err();
        assert!(error.message.starts_with("`systemctl` cannot be run: "), "{error}");
    }

    #[test]
    fn another_form_of_answer_is_an_error() {
        let error = parse(b"UNIT LOAD ACTIVE").unwrap_err();
        assert!(error.message.starts_with("`systemctl` answered in another form"), "{error}");
    }

    #[test]
    fn without_systemd_another_way_is_named() {
        let error = require_systemd(Path::new("/nowhere")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "systemd does not run on this machine, so there is no list of services (hint: look for the service's \
             process with processes(name=…) or its port with listening_ports())"
        );
    }
}
