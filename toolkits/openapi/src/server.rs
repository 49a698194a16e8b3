//! Where a document's server is: servers with variables, relative ones, and what the host says instead.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use url::Url;

use crate::document::{items, text};
use crate::{Config, Error};

/// The servers of one document.
pub(crate) struct Servers<'a> {
    /// What the host said instead of all of them.
    given: Option<Url>,
    variables: &'a BTreeMap<String, String>,
    /// Where the document came from.
    origin: Option<&'a Url>,
}

impl<'a> Servers<'a> {
    /// # Errors
    /// `Setting` if the host's `base_url` is none.
    pub(crate) fn new(config: &'a Config, origin: Option<&'a Url>) -> Result<Self, Error> {
        let given = config.base_url.as_deref().map(|text| {
            Url::parse(text)
                .map_err(|error| error.to_string())
                .and_then(|url| {
                    let has_user = !url.username().is_empty() || url.password().is_some();
                    if has_user {
                        Err("it holds a credential, which has its own setting".to_owned())
                    } else {
                        base(url)
                    }
                })
                .map_err(|problem| Error::Setting { setting: "base_url".to_owned(), problem })
        });
        Ok(Self { given: given.transpose()?, variables: &config.server_variables, origin })
    }

    /// The address of the first server that `owner` (the document, a path or an operation) names. `None` if it names none.
    pub(crate) fn of(&self, owner: &Map<String, Value>) -> Option<Result<Url, String>> {
        if let Some(given) = &self.given {
            return Some(Ok(given.clone()));
        }
        let server = items(owner, "servers").first()?.as_object()?;
        Some(self.resolve(server))
    }

    /// The address where a document that names no server has its own: its origin.
    pub(crate) fn fallback(&self) -> Result<Url, String> {
        match (&self.given, self.origin) {
            (Some(given), _) => Ok(given.clone()),
            (None, Some(origin)) => origin.join("/").map_err(|error| error.to_string()).and_then(base),
            (None, None) => Err("it names none".to_owned()),
        }
    }

    fn resolve(&self, server: &Map<String, Value>) -> Result<Url, String> {
        let template = text(server, "url").ok_or("a server has no `url`")?;
        let variables = server.get("variables").and_then(Value::as_object);
        let mut address = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else { break };
            let declared = variables.and_then(|variables| variables.get(name)).and_then(|one| one.get("default"));
            let declared = declared.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            let value = self.variables.get(name).cloned().or(declared);
            let value = value.filter(|value| !value.is_empty() || after.starts_with('/'));
            let value = value.ok_or_else(|| format!("the variable `{name}` of `{}` has no value", shown(template)))?;
            address.push_str(before);
            address.push_str(&value);
            rest = after;
        }
        address.push_str(rest);
        let parsed = match (Url::parse(&address), self.origin) {
            (Ok(url), _) => Ok(url),
            (Err(_), Some(origin)) => origin.join(&address).map_err(|error| error.to_string()),
            (Err(_), None) => Err(format!("`{}` is relative to an address that is not known", shown(&address))),
        };
        parsed.and_then(base)
    }
}

fn shown(text: &str) -> String {
    text.chars().take(120).collect()
}

/// The address as one that paths are added to: without query, user and the slash at its end.
fn base(mut url: Url) -> Result<Url, String> {
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(format!("`{}` is neither http:// nor https://", shown(url.as_str())));
    }
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn first(config: &Config, origin: Option<&str>, server: Value) -> Result<String, String> {
        let origin = origin.map(|text| Url::parse(text).unwrap());
        let servers = Servers::new(config, origin.as_ref()).map_err(|error| error.to_string())?;
        let owner = json!({"servers": [server]});
        servers.of(owner.as_object().unwrap()).unwrap().map(|url| url.to_string())
    }

    #[test]
    fn servers_are_found() {
        let plain = Config::default();
        let variables = || BTreeMap::from([("region".to_owned(), "eu".to_owned())]);
        let set = Config { server_variables: variables(), ..Config::default() };
        let given = Config { base_url: Some("http://127.0.0.1:1/x/".to_owned()), ..Config::default() };
        let template = json!({"url": "https://{region}.example.org:{port}/v1/",
            "variables": {"region": {"default": "us"}, "port": {"default": 8443}}});
        let document = Some("https://docs.example.org/api/openapi.json?x=1");
        let table = [
            (&plain, None, json!({"url": "https://api.example.org/v1/?a=b"}), Ok("https://api.example.org/v1")),
            (&plain, None, template.clone(), Ok("https://us.example.org:8443/v1")),
            (&set, None, template, Ok("https://eu.example.org:8443/v1")),
            (&plain, document, json!({"url": "/v2"}), Ok("https://docs.example.org/v2")),
            (&plain, document, json!({"url": "v2"}), Ok("https://docs.example.org/api/v2")),
            (&plain, document, json!({"url": "//other.org"}), Ok("https://other.org/")),
            (&given, None, json!({"url": "/v2"}), Ok("http://127.0.0.1:1/x")),
            (&plain, None, json!({"url": "/v2"}), Err("`/v2` is relative to an address that is not known")),
            (&plain, None, json!({"url": "file:///etc"}), Err("`file:///etc` is neither http:// nor https://")),
            (&plain, None, json!({"url": "https://{x}/"}), Err("the variable `x` of `https://{x}/` has no value")),
            (&plain, None, json!({"url": "https://user:pass@a.org/"}), Ok("https://a.org/")),
        ];
        for (config, origin, server, expected) in table {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(first(config, origin, server.clone()), expected, "{server}");
        }
    }

    #[test]
    fn a_base_url_with_a_password_is_refused() {
        let config = Config { base_url: Some("https://user:pass@a.org".to_owned()), ..Config::default() };
        let error = Servers::new(&config, None).err().unwrap();
        let expected = "base_url cannot be used: it holds a credential, which has its own setting";
        assert_eq!(error.to_string(), expected);
    }
}
