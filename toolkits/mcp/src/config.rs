//! The file that names servers: the `mcpServers` JSON that other MCP hosts read too. It starts nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};

use crate::Error;

/// One server of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its key in the file. The toolkit is named after it.
    pub name: String,
    /// Where it is.
    pub endpoint: Endpoint,
    /// True if it must not be started. Default false.
    pub disabled: bool,
}

/// Where a server is. Its `Debug` form hides what may be secret: the values of `env` and `headers`.
#[derive(Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A program of this machine, spoken to by its standard input and output.
    Command {
        /// The program: a path, or a name to look up in `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables of its environment, beside the usual ones such as `PATH` and `HOME`. It gets no others of ours.
        env: BTreeMap<String, String>,
        /// Its working folder; in the file, relative to the file's folder. Default: ours.
        cwd: Option<PathBuf>,
    },
    /// A server that is reached by Streamable HTTP.
    Url {
        /// The address.
        url: String,
        /// Headers of every request, e.g. `Authorization`.
        headers: BTreeMap<String, String>,
    },
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { command, args, env, cwd } => formatter
                .debug_struct("Command")
                .field("command", command)
                .field("args", args)
                .field("env", &env.keys())
                .field("cwd", cwd)
                .finish(),
            Self::Url { url, headers } => {
                formatter.debug_struct("Url").field("url", url).field("headers", &headers.keys()).finish()
            }
        }
    }
}

/// Reads the servers of a file, the disabled ones too, in their order there.
///
/// # Errors
/// The file cannot be read; or it is no JSON, has a key that is not known or twice, or a server without `command` and
/// `url`: the error names the line and the key.
pub fn read(path: &Path) -> Result<Vec<Server>, Error> {
    let text = fs::read_to_string(path).map_err(|problem| Error::Read { path: path.to_owned(), problem })?;
    let file: File = serde_json::from_str(&text).map_err(|error| {
        let text = error.to_string();
        // The line has its own place in the message.
        let problem = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem).to_owned();
        Error::Configuration { path: path.to_owned(), line: error.line().max(1), problem }
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok(file.servers.into_iter().map(|(name, entry)| entry.server(name, folder)).collect())
}

struct File {
    servers: Vec<(String, Entry)>,
}

/// The other keys of the file are some other program's.
impl<'de> Deserialize<'de> for File {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = File;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object with `mcpServers`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File, A::Error> {
                let mut servers = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key == "mcpServers" {
                        if servers.replace(map.next_value::<Servers>()?.0).is_some() {
                            return Err(A::Error::custom("the key `mcpServers` is there twice"));
                        }
                    } else if key.to_lowercase().contains("server") {
                        return Err(A::Error::custom(format!("unknown key `{key}`, expected `mcpServers`")));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                servers.map(|servers| File { servers }).ok_or_else(|| A::Error::custom("there is no key `mcpServers`"))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

struct Servers(Vec<(String, Entry)>);

/// In the order of the file, where a map would sort them and keep only the last of two that have one name.
impl<'de> Deserialize<'de> for Servers {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Servers;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of servers by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Servers, A::Error> {
                let mut servers: Vec<(String, Entry)> = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if servers.iter().any(|(earlier, _)| *earlier == name) {
                        return Err(A::Error::custom(format!("the server `{name}` is there twice")));
                    }
                    let entry: Entry = map.next_value()?;
                    entry.check().map_err(|problem| A::Error::custom(format!("the server `{name}` {problem}")))?;
                    servers.push((name, entry));
                }
                Ok(Servers(servers))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// One server as it is written. What other hosts know and we do not need is let through; anything else is a typo.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Entry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    #[serde(default)]
    disabled: bool,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(rename = "type", alias = "transport")]
    kind: Option<String>,
    #[serde(default, rename = "autoApprove", alias = "alwaysAllow", deserialize_with = "ignored")]
    _approve: (),
    #[serde(default, rename = "description", deserialize_with = "ignored")]
    _description: (),
    #[serde(default, rename = "timeout", deserialize_with = "ignored")]
    _timeout: (),
}

fn ignored<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    IgnoredAny::deserialize(deserializer).map(drop)
}

impl Entry {
    fn check(&self) -> Result<(), String> {
        match (&self.command, &self.url) {
            (None, None) => return Err("has neither `command` nor `url`".to_owned()),
            (Some(_), Some(_)) => return Err("has both `command` and `url`".to_owned()),
            (Some(command), None) if command.trim().is_empty() => return Err("has an empty `command`".to_owned()),
            (None, Some(url)) if !url.starts_with("http://") && !url.starts_with("https://") => {
                return Err("has a `url` that is neither http:// nor https://".to_owned());
            }
            (None, Some(_)) if self.kind.as_deref() == Some("sse") => {
                return Err("has the `type` \"sse\", the transport of 2024; only Streamable HTTP is spoken".to_owned());
            }
            _ => {}
        }
        Ok(())
    }

    fn server(self, name: String, folder: &Path) -> Server {
        let endpoint = match (self.command, self.url) {
            (Some(command), _) => {
                Endpoint::Command { command, args: self.args, env: self.env, cwd: self.cwd.map(|cwd| folder.join(cwd)) }
            }
            (None, url) => Endpoint::Url { url: url.unwrap_or_default(), headers: self.headers },
        };
        Server { name, endpoint, disabled: self.disabled }
    }
}
