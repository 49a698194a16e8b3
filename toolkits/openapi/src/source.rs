//! A document's bytes, and the JSON in them. It does not know what a document says.

use std::path::Path;

use reqwest::header::{ACCEPT, HeaderMap};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;
use url::Url;

use crate::client::{self, Body};
use crate::security;
use crate::value::{MOST_LEVELS, kept};
use crate::{Config, Error, Limits, Source, Tls};

/// Values in a document of YAML, whose aliases let a short text be a long document.
const MOST_YAML_VALUES: usize = 4_000_000;

/// Values of it that aliases repeat.
const MOST_YAML_REPEATED: usize = 200_000;

/// A document, and where it came from: relative addresses in it start there.
pub(crate) async fn read(source: &Source, config: &Config) -> Result<(Value, Option<Url>), Error> {
    let limits = &config.limits;
    let (bytes, base) = match source {
        Source::Text(text) => {
            if text.len() > limits.document_bytes {
                return Err(too_large(source, limits));
            }
            (text.clone().into_bytes(), None)
        }
        Source::File(path) => (read_file(path, source, limits).await?, None),
        Source::Url(url) => {
            let (bytes, url) = fetch(url, source, config).await?;
            (bytes, Some(url))
        }
    };
    parse(&bytes, source, limits.document_values).map(|value| (value, base))
}

async fn read_file(path: &Path, source: &Source, limits: &Limits) -> Result<Vec<u8>, Error> {
    let unreadable = |error: std::io::Error| Error::Read { document: source.to_string(), problem: error.to_string() };
    let file = tokio::fs::File::open(path).await.map_err(unreadable)?;
    let mut bytes = Vec::new();
    let most = u64::try_from(limits.document_bytes).unwrap_or(u64::MAX);
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).await.map_err(unreadable)?;
    if bytes.len() > limits.document_bytes { Err(too_large(source, limits)) } else { Ok(bytes) }
}

async fn fetch(text: &str, source: &Source, config: &Config) -> Result<(Vec<u8>, Url), Error> {
    let limits = &config.limits;
    let unreadable = |problem: String| Error::Read { document: source.to_string(), problem };
    let url = Url::parse(text).map_err(|error| unreadable(format!("it is no URL: {error}")))?;
    let base = config.base_url.as_deref().and_then(|base| Url::parse(base).ok());
    let is_own = base.is_some_and(|base| client::same_origin(&base, &url));
    let (tls, headers) = match is_own {
        true => (config.tls.clone(), security::general(config)?),
        false => (Tls::default(), HeaderMap::new()),
    };
    let request = client::build(limits, &tls)?.get(url).header(ACCEPT, DOCUMENTS).headers(headers);
    let answered = async {
        let response = request.send().await.map_err(|error| unreadable(client::reason(&error)))?;
        let status = response.status();
        if !status.is_success() {
            return Err(unreadable(format!("the server answered {status}")));
        }
        let url = response.url().clone();
        match client::body(response, limits.document_bytes).await {
            Ok(Body::Whole(bytes)) => Ok((bytes, url)),
            Ok(Body::TooLong(_)) => Err(too_large(source, limits)),
            Err(error) => Err(unreadable(client::reason(&error))),
        }
    };
    timeout(limits.fetch, answered)
        .await
        .unwrap_or_else(|_| Err(unreadable(format!("it did not come within {:?}", limits.fetch))))
}

/// What a document may come as. Kubernetes would send its own in another form.
const DOCUMENTS: &str = "application/json, application/yaml;q=0.9, */*;q=0.5";

fn too_large(source: &Source, limits: &Limits) -> Error {
    Error::TooLarge { document: source.to_string(), limit: format!("{} bytes", limits.document_bytes) }
}

/// JSON where the text begins like JSON, else YAML.
fn parse(bytes: &[u8], source: &Source, most: usize) -> Result<Value, Error> {
    let wrong = |problem: String| Error::NotOpenApi { document: source.to_string(), problem };
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let json = match kept(&mut deserializer, most).and_then(|value| deserializer.end().map(|()| value)) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    // A document of YAML may begin with a brace too, but then the message about JSON is the likelier one.
    if matches!(first, None | Some(b'{' | b'[')) {
        return Err(wrong(json.to_string()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is no UTF-8 text".to_owned()))?;
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MOST_LEVELS,
            max_nodes: MOST_YAML_VALUES,
            max_events: MOST_YAML_VALUES * 2,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MOST_YAML_REPEATED,
        },
        // `NO` is a country, as JSON and YAML 1.2 have it.
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| kept(deserializer, most))
        .map_err(|error| {
            let text = error.to_string();
            wrong(text.lines().next().unwrap_or_default().to_owned())
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(text: &str) -> Result<Value, String> {
        parse(text.as_bytes(), &Source::Text(String::new()), 1_000_000).map_err(|error| error.to_string())
    }

    #[test]
    fn yaml_reads_as_the_json_it_means() {
        let text = "openapi: 3.1.0\npaths:\n  /x:\n    get:\n      responses:\n        200: {description: ok}\n        '404': &no {description: no}\n        410: *no\n      deprecated: true\n      x: [1, 1.5, null, ~, yes, 'on', 2024-01-01]\n";
        let expected = json!({
            "openapi": "3.1.0",
            "paths": {"/x": {"get": {
                "responses": {"200": {"description": "ok"}, "404": {"description": "no"}, "410": {"description": "no"}},
                "deprecated": true,
                "x": [1, 1.5, null, null, "yes", "on", "2024-01-01"],
            }}},
        });
        assert_eq!(parsed(text), Ok(expected));
    }

    #[test]
    fn examples_are_left_out_and_names_are_not() {
        let text = r#"{"example": 1, "components": {"schemas": {"examples": {"properties": {
            "example": {"example": {"a": 1}, "type": "string"}, "properties": {"example": 1, "type": "object"}}}}}}"#;
        let expected = json!({"components": {"schemas": {"examples": {"properties": {
            "example": {"type": "string"}, "properties": {"type": "object"}}}}}});
        assert_eq!(parsed(text), Ok(expected));
    }

    #[test]
    fn values_are_counted() {
        for text in ["[1, [2], {\"a\": 3}]", "- 1\n- [2]\n- {a: 3}\n"] {
            let read = |most| parse(text.as_bytes(), &Source::Text(String::new()), most);
            assert_eq!(read(6).unwrap(), json!([1, [2], {"a": 3}]));
            let problem = read(5).unwrap_err().to_string();
            assert!(problem.contains("it has too many values"), "{problem}");
        }
    }

    #[test]
    fn what_is_neither_says_so() {
        assert_eq!(
            parsed("{\"a\": "),
            Err("the document is no OpenAPI document: EOF while parsing a value at line 1 column 6".to_owned())
        );
        for text in ["", "a: [", "a: *none", &"[".repeat(1_000), &format!("a: {}", "[".repeat(1_000))] {
            let problem = parsed(text).unwrap_err();
            assert!(problem.starts_with("the document is no OpenAPI document: "), "{problem}");
        }
    }

    #[test]
    fn a_short_text_cannot_be_a_giant_document() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            text.push_str(&format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(", ")));
        }
        let problem = parsed(&text).unwrap_err();
        assert!(problem.starts_with("the document is no OpenAPI document: "), "{problem}");
    }
}
