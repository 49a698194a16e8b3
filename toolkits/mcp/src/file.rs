//! The file that names servers: the `mcpServers` JSON that other MCP hosts read too. It starts nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};

use crate::config::{Client, Transport};
use crate::{Endpoint, Error, Server};

/// What a file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Servers {
    /// The servers, the disabled ones too, in their order there.
    pub servers: Vec<Server>,
    /// What was passed over because it is not known, a sentence each.
    pub warnings: Vec<String>,
}

/// Reads the servers of a file.
///
/// # Errors
/// The file cannot be read; or it is no JSON, has a key twice, a value of another type, or a server without `command`
/// and `url`: the error names the line and the key.
pub fn read(path: &Path) -> Result<Servers, Error> {
    let text = fs::read_to_string(path).map_err(|problem| Error::Read { path: path.to_owned(), problem })?;
    let file: File = serde_json::from_str(&text).map_err(|error| {
        let text = error.to_string();
        // The line has its own place in the message.
        let problem = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem).to_owned();
        Error::Configuration { path: path.to_owned(), line: error.line().max(1), problem }
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut read = Servers::default();
    for (name, entry) in file.0 {
        for key in &entry.unknown {
            read.warnings.push(format!("{}: the server `{name}` has an unknown key `{key}`", path.display()));
        }
        read.servers.push(entry.server(name, folder));
    }
    Ok(read)
}

/// One server that is written as the value of its name in such a file would be. Relative paths in it start at `folder`. The
/// second part is what was passed over because it is not known, a sentence each.
///
/// # Errors
/// What is wrong with it: one sentence without a full stop.
pub fn server_of(name: &str, value: serde_json::Value, folder: &Path) -> Result<(Server, Vec<String>), String> {
    let entry: Entry = serde_json::from_value(value).map_err(|error| error.to_string())?;
    entry.check().map_err(|problem| format!("the server `{name}` {problem}"))?;
    let warnings = entry.unknown.iter().map(|key| format!("the server `{name}` has an unknown key `{key}`")).collect();
    Ok((entry.server(name.to_owned(), folder), warnings))
}

struct File(Vec<(String, Entry)>);

/// The other keys of the file are some other program's.
impl<'de> Deserialize<'de> for File {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = File;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object with `mcpServers`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File, A::Error> {
                let mut servers = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key == "mcpServers" || key == "servers" {
                        if servers.replace(map.next_value::<Entries>()?.0).is_some() {
                            return Err(A::Error::custom(format!("the key `{key}` is there twice")));
                        }
                    } else if key.to_lowercase().contains("server") {
                        return Err(A::Error::custom(format!("unknown key `{key}`, expected `mcpServers`")));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                servers.map(File).ok_or_else(|| A::Error::custom("there is no key `mcpServers`"))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

struct Entries(Vec<(String, Entry)>);

/// In the order of the file, where a map would sort them and keep only the last of two that have one name.
impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ByName;
        impl<'de> Visitor<'de> for ByName {
            type Value = Entries;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object of servers by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut servers: Vec<(String, Entry)> = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if servers.iter().any(|(earlier, _)| *earlier == name) {
                        return Err(A::Error::custom(format!("the server `{name}` is there twice")));
                    }
                    let entry: Entry = map.next_value()?;
                    entry.check().map_err(|problem| A::Error::custom(format!("the server `{name}` {problem}")))?;
                    servers.push((name, entry));
                }
                Ok(Entries(servers))
            }
        }
        deserializer.deserialize_map(ByName)
    }
}

/// One server as it is written.
#[derive(Default)]
struct Entry {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    kind: Option<String>,
    oauth: Oauth,
    disabled: bool,
    timeout: Option<f64>,
    include: Vec<String>,
    exclude: Vec<String>,
    unknown: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Oauth {
    client_id: Option<String>,
    client_secret: Option<String>,
    client_metadata_url: Option<String>,
    scopes: Vec<String>,
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Entry;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object with `command` or `url`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
                let mut entry = Entry::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "command" => entry.command = map.next_value()?,
                        "args" => entry.args = map.next_value()?,
                        "env" => entry.env = map.next_value()?,
                        "cwd" => entry.cwd = map.next_value()?,
                        "url" | "serverUrl" | "httpUrl" => entry.url = map.next_value()?,
                        "headers" => entry.headers = map.next_value()?,
                        "type" | "transport" => entry.kind = map.next_value()?,
                        "oauth" => entry.oauth = map.next_value()?,
                        "disabled" => entry.disabled = map.next_value()?,
                        "enabled" => entry.disabled = !map.next_value::<bool>()?,
                        "timeout" => entry.timeout = map.next_value()?,
                        "includeTools" | "enabledTools" | "tools" => entry.include = map.next_value()?,
                        "excludeTools" | "disabledTools" => entry.exclude = map.next_value()?,
                        // What other hosts know and we do not need.
                        "autoApprove" | "alwaysAllow" | "trust" | "description" | "name" | "icon" => {
                            map.next_value::<IgnoredAny>()?;
                        }
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            entry.unknown.push(key);
                        }
                    }
                }
                Ok(entry)
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

impl Entry {
    fn check(&self) -> Result<(), String> {
        match (&self.command, &self.url) {
            (None, None) => {
                // The likeliest reason is a mistyped `command`.
                let also = self.unknown.first().map(|key| format!(", only an unknown `{key}`")).unwrap_or_default();
                return Err(format!("has neither `command` nor `url`{also}"));
            }
            (Some(_), Some(_)) => return Err("has both `command` and `url`".to_owned()),
            (Some(command), None) if command.trim().is_empty() => return Err("has an empty `command`".to_owned()),
            (None, Some(url)) if !["http://", "https://", "${"].iter().any(|begin| url.starts_with(begin)) => {
                return Err("has a `url` that is neither http:// nor https://".to_owned());
            }
            _ => {}
        }
        let kinds: &[&str] = if self.command.is_some() {
            &["stdio", "local"]
        } else {
            &["http", "streamable-http", "streamableHttp", "sse", "remote"]
        };
        match &self.kind {
            Some(kind) if !kinds.contains(&kind.as_str()) => {
                return Err(format!("has the `type` \"{kind}\", expected {}", kinds.join(", ")));
            }
            _ => {}
        }
        if self.timeout.is_some_and(|timeout| !(timeout > 0.0 && timeout < 1e9)) {
            return Err("has a `timeout` that is no time".to_owned());
        }
        Ok(())
    }

    fn server(self, name: String, folder: &Path) -> Server {
        let transport = match self.kind.as_deref() {
            Some("sse") => Transport::Sse,
            Some("http" | "streamable-http" | "streamableHttp") => Transport::Streamable,
            _ => Transport::Either,
        };
        let client = Client {
            id: self.oauth.client_id,
            secret: self.oauth.client_secret,
            metadata_url: self.oauth.client_metadata_url,
            scopes: self.oauth.scopes,
        };
        let endpoint = match (self.command, self.url) {
            (Some(command), _) => {
                Endpoint::Command { command, args: self.args, env: self.env, cwd: self.cwd.map(|cwd| folder.join(cwd)) }
            }
            (None, url) => Endpoint::Url { url: url.unwrap_or_default(), headers: self.headers, transport, client },
        };
        let timeout = self.timeout.map(|timeout| {
            // Some hosts count in seconds and some in milliseconds; nobody means a thousand seconds.
            Duration::from_secs_f64(if timeout >= 1_000.0 { timeout / 1_000.0 } else { timeout })
        });
        let everything = |patterns: &Vec<String>| patterns.iter().any(|pattern| pattern == "*");
        let include = if everything(&self.include) { Vec::new() } else { self.include };
        Server { disabled: self.disabled, timeout, include, exclude: self.exclude, ..Server::new(name, endpoint) }
    }
}
