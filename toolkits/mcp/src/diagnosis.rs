//! Whether a server can be used, told hop by hop, for a person. It starts a server of its own and ends it.

use std::time::Duration;

use tokio::time::Instant;

use crate::variables::Variables;
use crate::{Endpoint, Error, Server, Settings, opening, tool};

/// One step on the way to a usable toolkit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// `spawn`, `version`, `list`, `filter` or `name`.
    pub name: &'static str,
    /// How long it took.
    pub took: Duration,
    /// What came of it; if it failed, there are no further hops.
    pub outcome: Result<String, String>,
    /// What the user can do if it failed, or about what was left out.
    pub hint: Option<String>,
}

/// Goes the whole way once, with nothing remembered.
pub async fn diagnose(server: &Server, settings: &Settings) -> Vec<Hop> {
    let mut hops = Vec::new();
    let mut hop = |name, took, outcome: Result<String, String>, hint: Option<String>| {
        hops.push(Hop { name, took, outcome, hint });
    };
    let begun = Instant::now();
    let opened = match server.with_variables(&Variables::of_process()) {
        Ok(server) => opening::open(&server, settings, None).await.map(|connection| (connection, server)),
        Err(error) => Err(error),
    };
    let (connection, server) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let name = match (&error, &server.endpoint) {
                (Error::Start { .. } | Error::Variable { .. }, _) => "spawn",
                (_, Endpoint::Command { .. }) => {
                    hop("spawn", Duration::ZERO, Ok("it starts".to_owned()), None);
                    "version"
                }
                _ => "version",
            };
            hop(name, begun.elapsed(), Err(error.to_string()), Some(error.hint().into_owned()));
            return hops;
        }
    };
    let (started, agreed) = connection.took;
    let spawned = match &server.endpoint {
        Endpoint::Command { command, .. } => format!("`{command}` runs"),
        Endpoint::Url { url, .. } => format!("nothing to start for {}", without_secrets(url)),
    };
    hop("spawn", started, Ok(spawned), None);
    hop("version", agreed, Ok(connection.version(&settings.limits)), None);
    let begun = Instant::now();
    let listed = match connection.tools(&server, &settings.limits).await {
        Ok(listed) => listed,
        Err(problem) => {
            let took = begun.elapsed();
            let error = connection.fail(&server, problem).await;
            hop("list", took, Err(error.to_string()), Some(error.hint().into_owned()));
            return hops;
        }
    };
    hop("list", begun.elapsed(), Ok(counted(listed.len(), "tool")), None);
    let begun = Instant::now();
    let read = tool::operations(&listed, &server, &settings.limits);
    let mut outcome = format!("{} left out by the settings", counted(read.filtered.len(), "tool"));
    if !read.unusable.is_empty() {
        outcome = format!("{outcome}, {} unusable: {}", read.unusable.len(), read.unusable.join("; "));
    }
    let nothing = read.operations.is_empty() && !listed.is_empty();
    let hint = nothing.then(|| "look at `includeTools` and `excludeTools`: nothing is left".to_owned());
    hop("filter", begun.elapsed(), Ok(outcome), hint);
    let renamed = |tool: &&tool::Tool| tool.operation != tool.name;
    let renamed: Vec<String> = read
        .tools
        .iter()
        .filter(renamed)
        .map(|tool| format!("`{}` is {}()", tool::shown(&tool.name, &settings.limits), tool.operation))
        .collect();
    let mut outcome = format!("{} with {}", server.toolkit_name(), counted(read.operations.len(), "operation"));
    if let Some((few, rest)) = renamed.split_at_checked(SHOWN_NAMES.min(renamed.len())).filter(|_| !renamed.is_empty())
    {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        outcome = format!("{outcome}; {}{more}", few.join(", "));
    }
    hop("name", Duration::ZERO, Ok(outcome), None);
    hops
}

/// Names that are shown of those that were changed.
const SHOWN_NAMES: usize = 8;

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The address without what may be a key.
fn without_secrets(url: &str) -> String {
    match reqwest::Url::parse(url) {
        Ok(url) => format!("{}{}", url.origin().ascii_serialization(), url.path()),
        Err(_) => "its address".to_owned(),
    }
}
