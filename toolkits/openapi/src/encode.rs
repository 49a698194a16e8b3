//! Values as parts of a URL, a header or a form, in the styles of OpenAPI. It does not know operations.

use serde_json::Value;

/// How a list or an object is written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `a,b`
    Simple,
    /// `.a.b`
    Label,
    /// `;name=a;name=b`
    Matrix,
    /// `name=a&name=b`
    Form,
    /// `name=a b`
    SpaceDelimited,
    /// `name=a|b`
    PipeDelimited,
    /// `name[key]=a`
    DeepObject,
}

/// A pair of a query, a cookie or a form, percent-encoded by [`pairs`].
pub(crate) type Pair = (String, String);

/// Levels of lists and objects in a value that is written as pairs.
const MOST_LEVELS: usize = 16;

/// The pairs of one parameter. `null` and an empty list are none. `escape` writes a name or a piece of a value.
pub(crate) fn pairs(
    name: &str,
    value: &Value,
    style: Style,
    explode: bool,
    escape: &dyn Fn(&str) -> String,
) -> Vec<Pair> {
    let pair = |value: String| vec![(escape(name), value)];
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) if items.is_empty() => Vec::new(),
        Value::Array(_) | Value::Object(_) if style == Style::DeepObject => {
            let mut pairs = Vec::new();
            deep(name.to_owned(), value, 0, &mut pairs);
            pairs.into_iter().map(|(name, value)| (escape(&name), escape(&value))).collect()
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| escape(&scalar(item)));
            if explode {
                items.map(|item| (escape(name), item)).collect()
            } else {
                let separator = match style {
                    Style::SpaceDelimited => "%20",
                    Style::PipeDelimited => "%7C",
                    _ => ",",
                };
                pair(items.collect::<Vec<_>>().join(separator))
            }
        }
        Value::Object(fields) if explode => {
            fields.iter().map(|(key, value)| (escape(key), escape(&scalar(value)))).collect()
        }
        Value::Object(fields) => {
            let flat = fields.iter().flat_map(|(key, value)| [escape(key), escape(&scalar(value))]);
            pair(flat.collect::<Vec<_>>().join(","))
        }
        other => pair(escape(&scalar(other))),
    }
}

fn deep(name: String, value: &Value, level: usize, pairs: &mut Vec<Pair>) {
    match value {
        Value::Object(fields) if level < MOST_LEVELS => {
            for (key, value) in fields {
                deep(format!("{name}[{key}]"), value, level + 1, pairs);
            }
        }
        Value::Array(items) if level < MOST_LEVELS => {
            for (index, item) in items.iter().enumerate() {
                // Only objects need to be told apart.
                let place = if item.is_object() { index.to_string() } else { String::new() };
                deep(format!("{name}[{place}]"), item, level + 1, pairs);
            }
        }
        Value::Null => {}
        other => pairs.push((name, scalar(other))),
    }
}

/// A value in a path or a header, where the name is not written, but for the style `Matrix`.
pub(crate) fn piece(name: &str, value: &Value, style: Style, explode: bool, escape: &dyn Fn(&str) -> String) -> String {
    let written: Vec<String> = match value {
        Value::Array(items) => items.iter().map(|item| escape(&scalar(item))).collect(),
        Value::Object(fields) if explode => {
            fields.iter().map(|(key, value)| format!("{}={}", escape(key), escape(&scalar(value)))).collect()
        }
        Value::Object(fields) => fields.iter().flat_map(|(key, value)| [escape(key), escape(&scalar(value))]).collect(),
        other => vec![escape(&scalar(other))],
    };
    let name = escape(name);
    match style {
        Style::Label => format!(".{}", written.join(if explode { "." } else { "," })),
        Style::Matrix if explode && value.is_object() => format!(";{}", written.join(";")),
        Style::Matrix if explode => written.iter().map(|item| format!(";{name}={item}")).collect(),
        Style::Matrix => format!(";{name}={}", written.join(",")),
        _ => written.join(","),
    }
}

/// A value that is no list and no object as text; a list or an object as JSON.
pub(crate) fn scalar(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The text with everything percent-encoded that could mean something in a URL.
pub(crate) fn strict(text: &str) -> String {
    percent(text, b"-._~")
}

/// The same, with the characters left as they are that a server asked for by `allowReserved`, unless they end the value.
pub(crate) fn reserved(text: &str) -> String {
    percent(text, b"-._~:/?@!$'()*,;[]")
}

/// The text as a form has it.
pub(crate) fn form(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn percent(text: &str, kept: &[u8]) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            written.push(char::from(byte));
        } else {
            written.push_str(&format!("%{byte:02X}"));
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn query(value: Value, style: Style, explode: bool) -> String {
        let pairs = pairs("color", &value, style, explode, &strict);
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
    }

    // The rows of the table "Style Examples" in OpenAPI 3.1.
    #[test]
    fn queries_are_written_in_every_style() {
        let array = || json!(["blue", "black", "brown"]);
        let object = || json!({"R": 100, "G": 200, "B": 150});
        let table = [
            (json!("blue"), Style::Form, true, "color=blue"),
            (array(), Style::Form, true, "color=blue&color=black&color=brown"),
            (array(), Style::Form, false, "color=blue,black,brown"),
            (object(), Style::Form, true, "R=100&G=200&B=150"),
            (object(), Style::Form, false, "color=R,100,G,200,B,150"),
            (array(), Style::SpaceDelimited, false, "color=blue%20black%20brown"),
            (array(), Style::PipeDelimited, false, "color=blue%7Cblack%7Cbrown"),
            (object(), Style::DeepObject, true, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
            (
                json!({"a": {"b": [1, {"c": true}]}}),
                Style::DeepObject,
                true,
                "color%5Ba%5D%5Bb%5D%5B%5D=1&color%5Ba%5D%5Bb%5D%5B1%5D%5Bc%5D=true",
            ),
            (json!("a b&c=d/é"), Style::Form, true, "color=a%20b%26c%3Dd%2F%C3%A9"),
            (json!(null), Style::Form, true, ""),
            (json!([]), Style::Form, false, ""),
        ];
        for (value, style, explode, expected) in table {
            assert_eq!(query(value.clone(), style, explode), expected, "{value} {style:?}");
        }
    }

    #[test]
    fn paths_are_written_in_every_style() {
        let array = || json!(["blue", "black", "brown"]);
        let object = || json!({"R": 100, "G": 200, "B": 150});
        let table = [
            (json!("blue"), Style::Simple, false, "blue"),
            (array(), Style::Simple, false, "blue,black,brown"),
            (object(), Style::Simple, false, "R,100,G,200,B,150"),
            (object(), Style::Simple, true, "R=100,G=200,B=150"),
            (json!("blue"), Style::Label, false, ".blue"),
            (array(), Style::Label, false, ".blue,black,brown"),
            (array(), Style::Label, true, ".blue.black.brown"),
            (object(), Style::Label, true, ".R=100.G=200.B=150"),
            (json!("blue"), Style::Matrix, false, ";color=blue"),
            (array(), Style::Matrix, false, ";color=blue,black,brown"),
            (array(), Style::Matrix, true, ";color=blue;color=black;color=brown"),
            (object(), Style::Matrix, true, ";R=100;G=200;B=150"),
            (json!("../x"), Style::Simple, false, "..%2Fx"),
        ];
        for (value, style, explode, expected) in table {
            assert_eq!(piece("color", &value, style, explode, &strict), expected, "{value} {style:?}");
        }
    }
}
