//! Which document, and what of it becomes a toolkit. It reads and sends nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use fimble_toolkit::Risk;

use crate::Limits;

/// Where a document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file of JSON or YAML.
    File(PathBuf),
    /// An `http://` or `https://` address. It is fetched without credentials, unless it is one of the server of `base_url`,
    /// which gets them with every call anyway.
    Url(String),
    /// The text itself, JSON or YAML.
    Text(String),
}

impl Source {
    /// A URL where `text` begins like one, else a file.
    pub fn of(text: &str) -> Self {
        if text.starts_with("http://") || text.starts_with("https://") {
            Self::Url(text.to_owned())
        } else {
            Self::File(PathBuf::from(text))
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(formatter, "{}", path.display()),
            // A query may hold a key.
            Self::Url(url) => formatter.write_str(url.split(['?', '#']).next().unwrap_or_default()),
            Self::Text(_) => formatter.write_str("the document"),
        }
    }
}

/// What becomes of a document.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The toolkit's name without `_toolkit`. Default: the document's title.
    pub name: Option<String>,
    /// The address that paths are added to, in place of every server that the document names. Default: the document's first
    /// server; a relative one starts at the document's own URL.
    pub base_url: Option<String>,
    /// Values of the server's variables by name. Default: the document's own defaults.
    pub server_variables: BTreeMap<String, String>,
    /// Credentials by the name of the security scheme in the document.
    pub credentials: BTreeMap<String, Credential>,
    /// The credential of schemes that `credentials` does not name. Where the document names no scheme at all, a token is sent
    /// as bearer token.
    pub credential: Option<Credential>,
    /// Headers of every request, e.g. the key of a gateway. They win over the document's.
    pub headers: BTreeMap<String, Secret>,
    /// Which operations there are.
    pub filter: Filter,
    /// Risks by pattern, see [`Filter::include`]; the first that matches wins over the document and the method.
    pub risks: Vec<(String, Risk)>,
    /// Python names of operations by `operationId`, in place of those that are made of it. Default none.
    pub names: BTreeMap<String, String>,
    /// Names, as the document has them, of optional parameters that programs do not see: a stub is shorter without. Default none.
    pub hidden: Vec<String>,
    /// How the server of `base_url` is trusted. Default: by the machine's certificates.
    pub tls: Tls,
    /// The limits.
    pub limits: Limits,
}

/// How both ends of a connection over TLS prove who they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificates in PEM form: only servers that one of them vouches for are spoken to. Default: the machine's.
    pub authorities: Option<String>,
    /// The client's certificate and its key in PEM form, one after the other. Default none.
    pub identity: Option<Secret>,
}

/// Which operations of a document become operations of the toolkit.
///
/// A pattern is a text in which `*` stands for any characters. It is matched against an operation's Python name, its
/// `operationId`, and its method and path as in `GET /pets/{id}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only operations with one of these tags; empty is all. Default empty.
    pub tags: Vec<String>,
    /// Only operations that match one of these patterns; empty is all. Default empty.
    pub include: Vec<String>,
    /// No operation that matches one of these patterns. Default empty.
    pub exclude: Vec<String>,
}

/// What proves to the server who calls. Programs and models never see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// An API key, a bearer token, an OAuth 2 access token; for basic authentication `user:password`.
    Token(Secret),
    /// Basic authentication.
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: Secret,
    },
}

impl Credential {
    /// The parts that no text may show.
    pub(crate) fn secret(&self) -> &Secret {
        match self {
            Self::Token(secret) | Self::Basic { password: secret, .. } => secret,
        }
    }
}

/// A text that is sent and never shown, not in `Debug` either.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret. White space at its ends, such as the line break of a file, is no part of it.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().to_owned())
    }

    /// The text.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

impl Filter {
    /// True if an operation with these names and tags is wanted.
    pub(crate) fn takes(&self, names: &[&str], tags: &[&str]) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| names.iter().any(|name| matches(pattern, name)));
        (self.tags.is_empty() || self.tags.iter().any(|tag| tags.contains(&tag.as_str())))
            && (self.include.is_empty() || any(&self.include))
            && !any(&self.exclude)
    }
}

/// True if `text` is what the pattern says, `*` being any characters.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(place) => rest = rest.get(place + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_characters() {
        let table = [
            ("list", "list", true),
            ("list", "lists", false),
            ("*", "", true),
            ("list*", "list_pets", true),
            ("*pets", "list_pets", true),
            ("GET /*/{id}", "GET /pets/{id}", true),
            ("a*a", "a", false),
            ("a*b*a", "axbxa", true),
            ("a*b*a", "axxa", false),
            ("**x", "x", true),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
