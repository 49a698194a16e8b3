//! Secrets: named by programs, known to the host, sent only to whom they are for.

use std::collections::BTreeMap;
use std::fmt;

use fimble_toolkit::{ErrorKind, ToolError};
use reqwest::Url;

use crate::SecretUse;
use crate::address::Host;

/// What stands where a response repeats a secret.
const MASK: &str = "***";

/// The secrets by name. Its `Debug` form shows names only.
#[derive(Clone, Default)]
pub(crate) struct Secrets(BTreeMap<String, Secret>);

#[derive(Clone)]
struct Secret {
    value: String,
    hosts: Vec<Host>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

impl Secrets {
    /// # Errors
    /// A secret without value, without hosts, or with a value that no header can have; a value that nobody declared.
    pub(crate) fn new(
        uses: &BTreeMap<String, SecretUse>,
        mut values: BTreeMap<String, String>,
    ) -> Result<Self, ToolError> {
        let wrong = |name: &str, what: &str, hint: &str| {
            Err(ToolError::invalid_argument(format!("the secret `{name}` of the HTTP toolkit {what}")).with_hint(hint))
        };
        let mut secrets = BTreeMap::new();
        for (name, used) in uses {
            if !is_name(name) {
                return wrong(name, "has no plain name", "use ASCII letters, digits and `_`");
            }
            let value = values.remove(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
            let Some(value) = value else {
                let variable = used.env.as_ref().unwrap_or(name);
                return wrong(
                    name,
                    "has no value",
                    &format!("set the environment variable `{variable}`, or remove the secret"),
                );
            };
            if !value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
                return wrong(name, "has a value that no header can have", "use printable ASCII without line ends");
            }
            if used.hosts.is_empty() {
                return wrong(name, "is for no host", "name those that may be sent it in `hosts`");
            }
            let hosts = used.hosts.iter().map(|host| Host::parse(host)).collect::<Result<_, _>>()?;
            secrets.insert(name.clone(), Secret { value, hosts });
        }
        if let Some(name) = values.keys().next() {
            return wrong(name, "is not declared", "name its hosts in `secrets`");
        }
        Ok(Self(secrets))
    }

    /// The text with values in place of `${NAME}`, for a request to `url`; and whether there were any.
    ///
    /// # Errors
    /// An unknown name, or one that is not for this host.
    pub(crate) fn fill(&self, text: &str, url: &Url) -> Result<(String, bool), ToolError> {
        let (mut filled, mut rest, mut any) = (String::new(), text, false);
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}').filter(|(name, _)| is_name(name)) else {
                filled.push_str(before);
                filled.push_str("${");
                rest = after;
                continue;
            };
            let secret = self.0.get(name).ok_or_else(|| self.unknown(name))?;
            if !secret.hosts.iter().any(|host| host.means(url)) {
                let host = url.host_str().unwrap_or_default();
                let message = format!("the secret `{name}` is not for `{host}`");
                return Err(ToolError::new(ErrorKind::Denied, message)
                    .with_hint("its `hosts` in the configuration name those that it is for; tell the user"));
            }
            filled.push_str(before);
            filled.push_str(&secret.value);
            (rest, any) = (behind, true);
        }
        filled.push_str(rest);
        Ok((filled, any))
    }

    /// The text without any secret's value.
    pub(crate) fn mask(&self, text: String) -> String {
        self.0.values().fold(
            text,
            |text, secret| {
                if text.contains(&secret.value) { text.replace(&secret.value, MASK) } else { text }
            },
        )
    }

    fn unknown(&self, name: &str) -> ToolError {
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        ToolError::not_found(format!("there is no secret `{name}`")).with_hint(match names.as_slice() {
            [] => "the host knows none; tell the user".to_owned(),
            names => format!("there are {}", names.join(", ")),
        })
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secrets() -> Secrets {
        let uses = [("TOKEN", "api.test"), ("OTHER", "*.test")]
            .map(|(name, host)| (name.to_owned(), SecretUse { env: None, hosts: vec![host.to_owned()] }));
        let values = [("TOKEN", "s3cret-value"), ("OTHER", " other ")].map(|(name, value)| (name.into(), value.into()));
        Secrets::new(&uses.into(), values.into()).unwrap()
    }

    #[test]
    fn a_name_is_filled_only_towards_its_hosts() {
        let url = |text| Url::parse(text).unwrap();
        let fill = |text: &str| secrets().fill(text, &url("https://api.test/x"));
        assert_eq!(fill("Bearer ${TOKEN}").unwrap(), ("Bearer s3cret-value".to_owned(), true));
        assert_eq!(fill("${OTHER}:${TOKEN}!").unwrap(), ("other:s3cret-value!".to_owned(), true));
        for plain in ["", "plain", "$TOKEN", "${", "${}", "${a b}", "a}${"] {
            assert_eq!(fill(plain).unwrap(), (plain.to_owned(), false));
        }
        assert_eq!(
            fill("${NONE}").unwrap_err().to_string(),
            "there is no secret `NONE` (hint: there are OTHER, TOKEN)"
        );
        let elsewhere = secrets().fill("Bearer ${TOKEN}", &url("https://evil.test/")).unwrap_err();
        assert_eq!(elsewhere.message, "the secret `TOKEN` is not for `evil.test`");
        assert_eq!(format!("{:?}", secrets()), "{\"OTHER\", \"TOKEN\"}");
    }

    #[test]
    fn a_secret_that_cannot_be_used_is_a_wrong_setting() {
        let used = |hosts: &[&str]| SecretUse { env: None, hosts: hosts.iter().map(ToString::to_string).collect() };
        let error = |name: &str, hosts: &[&str], values: &[(&str, &str)]| {
            let values = values.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let error = Secrets::new(&[(name.to_owned(), used(hosts))].into(), values).unwrap_err();
            assert!(error.hint.is_some());
            error.message
        };
        assert_eq!(error("A", &["a"], &[]), "the secret `A` of the HTTP toolkit has no value");
        assert_eq!(error("A", &[], &[("A", "x")]), "the secret `A` of the HTTP toolkit is for no host");
        assert_eq!(error("A", &["a b"], &[("A", "x")]), "`a b` is no host for the HTTP toolkit");
        assert_eq!(error("A b", &["a"], &[]), "the secret `A b` of the HTTP toolkit has no plain name");
        assert_eq!(error("A", &["a"], &[("A", "x"), ("B", "y")]), "the secret `B` of the HTTP toolkit is not declared");
        assert!(error("A", &["a"], &[("A", "x\ny")]).ends_with("has a value that no header can have"));
    }

    proptest! {
        #[test]
        fn no_text_shows_a_secret_after_masking(text in "[${}A-Za-z]{0,40}") {
            let url = Url::parse("https://api.test/").unwrap();
            if let Ok((filled, any)) = secrets().fill(&text, &url) {
                prop_assert_eq!(any, filled != text);
                let masked = secrets().mask(filled);
                prop_assert!(!masked.contains("s3cret-value"));
            }
        }
    }
}
