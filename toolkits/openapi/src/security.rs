//! What proves to a server who calls: a document's security schemes, and the credentials that the host has for them.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use crate::config::Secret;
use crate::document::{Document, text};
use crate::parameter::Location;
use crate::{Config, Credential, Error, Problem, read};

/// A credential in its place in a request.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Grant {
    /// A header.
    Header(HeaderName, HeaderValue),
    /// A part of the query.
    Query(String, Secret),
    /// A cookie.
    Cookie(String, Secret),
}

/// What a call proves, and what it could prove if the host had more credentials.
#[derive(Clone, Default)]
pub(crate) struct Grants {
    /// Sent with each call.
    pub(crate) sent: Vec<Grant>,
    /// The scheme that the operation wants and for which there is no credential.
    pub(crate) missing: Option<String>,
}

/// The headers that prove who asks for the document itself, which is not there yet to say what it wants: the host's own, and
/// its credential as bearer token or basic authentication.
///
/// # Errors
/// `Setting`: a header or a credential that cannot be sent.
pub(crate) fn general(config: &Config) -> Result<HeaderMap, Error> {
    let mut headers = read::headers(config)?;
    if let Some(credential) = &config.credential {
        let grant = Place::of(credential).grant(credential, "", &Value::Null);
        let grant = grant.map_err(|problem| Error::Setting { setting: "the credential".to_owned(), problem })?;
        if let Grant::Header(name, value) = grant {
            headers.entry(name).or_insert(value);
        }
    }
    Ok(headers)
}

/// The security schemes of one document.
pub(crate) struct Schemes<'a> {
    /// By name; `None` where the host has no credential that fits.
    schemes: BTreeMap<&'a str, Option<Grant>>,
    /// Where credentials stand: such parameters are not the model's.
    places: Vec<(Location, String)>,
    /// What the document wants of operations that say nothing themselves.
    general: Option<&'a Value>,
    /// For a document that has no schemes.
    bearer: Option<Grant>,
}

impl<'a> Schemes<'a> {
    /// Reads the schemes. Those that cannot be used are problems.
    pub(crate) fn new(document: &'a Document, config: &Config, problems: &mut Vec<Problem>) -> Self {
        let declared = document.get("components").and_then(|components| components.get("securitySchemes"));
        let mut schemes = BTreeMap::new();
        let mut places = Vec::new();
        for (name, scheme) in declared.and_then(Value::as_object).into_iter().flatten() {
            let read = document.object(scheme).and_then(place);
            let credential = config.credentials.get(name).or(config.credential.as_ref());
            let grant = read.and_then(|place| {
                if let Place::Parameter(location, parameter) = &place {
                    places.push((*location, parameter.clone()));
                }
                credential.map(|credential| place.grant(credential, name, scheme)).transpose()
            });
            match grant {
                Ok(grant) => drop(schemes.insert(name.as_str(), grant)),
                Err(reason) => {
                    // Without a credential nobody misses it.
                    if credential.is_some() {
                        problems.push(Problem::new(format!("the security scheme `{name}`"), reason));
                    }
                    schemes.insert(name, None);
                }
            }
        }
        for name in config.credentials.keys().filter(|name| !schemes.contains_key(name.as_str())) {
            let known: Vec<&str> = schemes.keys().copied().collect();
            let reason = match known.as_slice() {
                [] => "the document has no security scheme, so nothing is sent for it".to_owned(),
                known => format!("there is a credential for it, but the document has only {}", known.join(", ")),
            };
            problems.push(Problem::new(format!("the security scheme `{name}`"), reason));
        }
        let bearer = config.credential.as_ref().filter(|_| schemes.is_empty());
        let bearer = bearer.and_then(|credential| Place::of(credential).grant(credential, "", &Value::Null).ok());
        Self { schemes, places, general: document.get("security"), bearer }
    }

    /// The credentials as they are sent in headers, without the name of their scheme.
    pub(crate) fn sent_secrets(&self) -> Vec<String> {
        let grants = self.schemes.values().flatten().chain(&self.bearer);
        let headers = grants.filter_map(|grant| match grant {
            Grant::Header(_, value) => value.to_str().ok(),
            Grant::Query(..) | Grant::Cookie(..) => None,
        });
        headers.filter_map(|value| value.rsplit(' ').next()).map(str::to_owned).collect()
    }

    /// True if a parameter there is a credential's.
    pub(crate) fn holds(&self, location: Location, name: &str) -> bool {
        self.places.iter().any(|(place, own)| *place == location && own.eq_ignore_ascii_case(name))
    }

    /// What is sent with an operation: the first of its alternatives for which there are all credentials.
    pub(crate) fn of(&self, operation: &'a Map<String, Value>) -> Grants {
        if self.schemes.is_empty() {
            return Grants { sent: self.bearer.clone().into_iter().collect(), missing: None };
        }
        let wanted = operation.get("security").or(self.general).and_then(Value::as_array);
        let mut missing = None;
        let mut anonymous = false;
        for alternative in wanted.into_iter().flatten().filter_map(Value::as_object) {
            if alternative.is_empty() {
                anonymous = true;
                continue;
            }
            let grants = alternative.keys().map(|name| self.schemes.get(name.as_str()).cloned().flatten());
            match grants.collect::<Option<Vec<Grant>>>() {
                Some(sent) => return Grants { sent, missing: None },
                None if missing.is_none() => {
                    missing = Some(alternative.keys().cloned().collect::<Vec<_>>().join(" and "));
                }
                None => {}
            }
        }
        Grants { sent: Vec::new(), missing: missing.filter(|_| !anonymous) }
    }
}

/// Where a scheme's credential stands.
enum Place {
    Parameter(Location, String),
    Bearer,
    Basic,
}

impl Place {
    /// Where a credential stands for which nothing is declared.
    fn of(credential: &Credential) -> Self {
        match credential {
            Credential::Token(_) => Self::Bearer,
            Credential::Basic { .. } => Self::Basic,
        }
    }

    fn grant(self, credential: &Credential, name: &str, scheme: &Value) -> Result<Grant, String> {
        let value = match (&self, credential) {
            (Self::Basic, Credential::Basic { user, password }) => {
                format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{}", password.expose())))
            }
            (Self::Basic, Credential::Token(token)) if token.expose().contains(':') => {
                format!("Basic {}", BASE64_STANDARD.encode(token.expose()))
            }
            // Some services take an API key as user without a password.
            (Self::Basic, Credential::Token(token)) => {
                format!("Basic {}", BASE64_STANDARD.encode(format!("{}:", token.expose())))
            }
            (_, Credential::Basic { .. }) => {
                return Err("it wants a token, and its credential is a user with a password".to_owned());
            }
            (Self::Bearer, Credential::Token(token)) => format!("Bearer {}", token.expose()),
            (Self::Parameter(Location::Header, header), Credential::Token(token)) => {
                // What is declared as a key in `Authorization` is most often a bearer token.
                let described = scheme.get("description").and_then(Value::as_str).unwrap_or_default();
                let says_bearer = [name, described].iter().any(|text| text.to_ascii_lowercase().contains("bearer"));
                if header.eq_ignore_ascii_case("authorization") && says_bearer && !token.expose().contains(' ') {
                    format!("Bearer {}", token.expose())
                } else {
                    token.expose().to_owned()
                }
            }
            (Self::Parameter(..), Credential::Token(token)) => token.expose().to_owned(),
        };
        let header = match self {
            Self::Parameter(Location::Query, parameter) => return Ok(Grant::Query(parameter, Secret::new(value))),
            Self::Parameter(Location::Cookie, parameter) => return Ok(Grant::Cookie(parameter, Secret::new(value))),
            Self::Parameter(_, header) => {
                HeaderName::try_from(header).map_err(|_| "it names a header that cannot be sent".to_owned())?
            }
            Self::Bearer | Self::Basic => AUTHORIZATION,
        };
        let mut value =
            HeaderValue::try_from(value).map_err(|_| "its credential cannot be sent in a header".to_owned())?;
        value.set_sensitive(true);
        Ok(Grant::Header(header, value))
    }
}

fn place(scheme: &Map<String, Value>) -> Result<Place, String> {
    let kind = text(scheme, "type").unwrap_or_default();
    match kind {
        "oauth2" | "openIdConnect" => Ok(Place::Bearer),
        "http" => match text(scheme, "scheme").unwrap_or_default().to_ascii_lowercase().as_str() {
            "bearer" => Ok(Place::Bearer),
            "basic" => Ok(Place::Basic),
            other => Err(format!("the HTTP scheme `{other}` is not spoken, only basic and bearer")),
        },
        "apiKey" => {
            let location = match text(scheme, "in").unwrap_or_default() {
                "header" => Location::Header,
                "query" => Location::Query,
                "cookie" => Location::Cookie,
                other => return Err(format!("an API key cannot be in `{other}`")),
            };
            let name = text(scheme, "name").ok_or("its API key has no `name`")?;
            Ok(Place::Parameter(location, name.to_owned()))
        }
        other => Err(format!("its type `{other}` is not spoken; a header of the host can take its place")),
    }
}
