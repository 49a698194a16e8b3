//! One server's settings, as other MCP hosts write them too. It reads no file and starts nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::Error;
use crate::variables::Variables;
use fimble_toolkit::python_name;

/// One server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its key in the file.
    pub name: String,
    /// The name that programs call it by, if it is not the one that is made of `name`. A Python name.
    pub toolkit: Option<String>,
    /// The command by which the user logs in to it, if it is not `fimble toolkits login` and its name.
    pub login: Option<String>,
    /// Where it is.
    pub endpoint: Endpoint,
    /// True if it must not be started. Default false.
    pub disabled: bool,
    /// How long a call may take after its start or its last sign of progress; [`Limits::call`](crate::Limits) if
    /// `None`.
    pub timeout: Option<Duration>,
    /// The tools that are used, by the server's own names or patterns such as `get_*`; all if empty.
    pub include: Vec<String>,
    /// The tools that are left out, in the same form; it wins over `include`.
    pub exclude: Vec<String>,
}

impl Server {
    /// A server with default settings.
    pub fn new(name: impl Into<String>, endpoint: Endpoint) -> Self {
        Self {
            name: name.into(),
            toolkit: None,
            login: None,
            endpoint,
            disabled: false,
            timeout: None,
            include: Vec::new(),
            exclude: Vec::new(),
        }
    }

    /// The name that programs call it by.
    pub fn toolkit_name(&self) -> String {
        let made = || format!("{}_toolkit", python_name(&self.name, "mcp").trim_end_matches('_'));
        self.toolkit.clone().unwrap_or_else(made)
    }

    /// What the user types to log in to it, and to allow it `scope`, which may be empty. The scope is the server's word, and
    /// this is a command that a person may run: what a shell could take for more than a word is left out.
    pub(crate) fn login_command(&self, scope: &str) -> String {
        let is_plain =
            |word: &str| word.chars().all(|letter| letter.is_ascii_alphanumeric() || ":/._-".contains(letter));
        let scopes = scope.split_whitespace().filter(|word| is_plain(word)).map(|word| format!(" --scope {word}"));
        let name =
            if is_plain(&self.name) { self.name.clone() } else { format!("'{}'", self.name.replace('\'', "'\\''")) };
        let command = self.login.clone().unwrap_or_else(|| format!("fimble toolkits login {name}"));
        format!("{command}{}", scopes.collect::<String>())
    }

    /// What of its settings no output should show: what its variables stand for wherever they are, and the values of headers
    /// and of variables that are named like keys.
    pub fn secrets(&self) -> Vec<String> {
        let variables = Variables::of_process();
        let ends = ["KEY", "TOKEN", "PASSWORD", "SECRET", "AUTHORIZATION", "COOKIE"];
        let is_key = |name: &str| ends.iter().any(|end| name.to_uppercase().ends_with(end));
        let keyed = |map: &BTreeMap<String, String>| -> Vec<String> {
            let keyed = map.iter().filter(|(name, _)| is_key(name)).map(|(_, value)| value);
            // Of `Bearer VALUE` the value.
            keyed.filter_map(|value| variables.put_into(value.rsplit(' ').next().unwrap_or_default()).ok()).collect()
        };
        let (texts, named): (Vec<&String>, Vec<String>) = match &self.endpoint {
            Endpoint::Command { command, args, env, .. } => {
                let whole = env.iter().filter(|(name, _)| is_key(name)).map(|(_, value)| value);
                let whole = whole.filter_map(|value| variables.put_into(value).ok()).collect();
                (std::iter::once(command).chain(args).chain(env.values()).collect(), whole)
            }
            Endpoint::Url { url, headers, client, .. } => {
                let secret = client.secret.as_ref().and_then(|secret| variables.put_into(secret).ok());
                let texts = std::iter::once(url).chain(headers.values()).chain(&client.id).chain(&client.secret);
                (texts.collect(), keyed(headers).into_iter().chain(secret).collect())
            }
        };
        texts.into_iter().flat_map(|text| variables.values_in(text)).chain(named).collect()
    }

    /// The server with the variables in its endpoint put in place.
    ///
    /// # Errors
    /// A variable that is not set and has no default.
    pub(crate) fn with_variables(&self, variables: &Variables) -> Result<Self, Error> {
        let put = |text: &str| {
            let missing = |variable| Error::Variable { server: self.name.clone(), variable };
            variables.put_into(text).map_err(missing)
        };
        let put_all = |map: &BTreeMap<String, String>| -> Result<BTreeMap<String, String>, Error> {
            map.iter().map(|(key, value)| Ok((key.clone(), put(value)?))).collect()
        };
        let endpoint = match &self.endpoint {
            Endpoint::Command { command, args, env, cwd } => Endpoint::Command {
                command: put(command)?,
                args: args.iter().map(|argument| put(argument)).collect::<Result<_, _>>()?,
                env: put_all(env)?,
                cwd: match cwd.as_ref().map(|cwd| cwd.to_str().ok_or(cwd)) {
                    Some(Ok(text)) => Some(PathBuf::from(put(text)?)),
                    Some(Err(path)) => Some(path.clone()),
                    None => None,
                },
            },
            Endpoint::Url { url, headers, transport, client } => Endpoint::Url {
                url: put(url)?,
                headers: put_all(headers)?,
                transport: *transport,
                client: Client {
                    id: client.id.as_deref().map(put).transpose()?,
                    secret: client.secret.as_deref().map(put).transpose()?,
                    ..client.clone()
                },
            },
        };
        Ok(Self { endpoint, ..self.clone() })
    }

    /// True if the tool is one of those that are used.
    pub(crate) fn uses(&self, tool: &str) -> bool {
        let named = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, tool));
        (self.include.is_empty() || named(&self.include)) && !named(&self.exclude)
    }
}

/// Where a server is. Its `Debug` form hides what may be secret: the values of `env` and `headers`, and a client's secret.
///
/// Its texts may hold `${NAME}`, `${env:NAME}` and `${NAME:-default}`, which stand for variables of our environment.
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
    /// A server that is reached by HTTP.
    Url {
        /// The address.
        url: String,
        /// Headers of every request, e.g. `Authorization`.
        headers: BTreeMap<String, String>,
        /// How HTTP is used.
        transport: Transport,
        /// Who we are where the server wants a login.
        client: Client,
    },
}

/// The two ways in which MCP uses HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Transport {
    /// Streamable HTTP, and the one of 2024 where that fails.
    #[default]
    Either,
    /// Streamable HTTP.
    Streamable,
    /// HTTP with server-sent events, the transport of 2024.
    Sse,
}

/// Our identity at a server's authorization server. By default we register ourselves there.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Client {
    /// An id that was registered by hand.
    pub id: Option<String>,
    /// The secret that belongs to it, if there is one.
    pub secret: Option<String>,
    /// An `https` address of a document that describes us; taken where the authorization server knows such documents.
    pub metadata_url: Option<String>,
    /// What is asked for. Default: what the server names.
    pub scopes: Vec<String>,
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Client").field("id", &self.id).field("scopes", &self.scopes).finish_non_exhaustive()
    }
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
            Self::Url { url, headers, transport, client } => formatter
                .debug_struct("Url")
                .field("url", url)
                .field("headers", &headers.keys())
                .field("transport", transport)
                .field("client", client)
                .finish(),
        }
    }
}

/// True if `name` is the pattern, in which each `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_choose_tools() {
        for (pattern, name, expected) in [
            ("get", "get", true),
            ("get", "get_all", false),
            ("get*", "get_all", true),
            ("*", "", true),
            ("*_all", "get_all", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("ab*bc", "abc", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
