//! A value as PostgreSQL writes it, as the JSON that programs get.

use serde_json::{Number, Value};
use tokio_postgres::types::{Kind, Type};

/// Digits that a double keeps.
const EXACT_DIGITS: usize = 15;

/// The value of a column of that type; `None` is NULL. The session's settings are those of [`crate::reading`].
pub(crate) fn value(text: Option<&str>, kind: &Type) -> Value {
    let Some(text) = text else { return Value::Null };
    match kind.kind() {
        Kind::Array(inner) => array(text, inner).unwrap_or_else(|| Value::from(text)),
        Kind::Domain(inner) => value(Some(text), inner),
        Kind::Simple => simple(text, kind),
        _ => Value::from(text),
    }
}

fn simple(text: &str, kind: &Type) -> Value {
    let read = match *kind {
        Type::BOOL => Some(Value::Bool(text == "t")),
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID | Type::XID => text.parse::<i64>().ok().map(Value::from),
        Type::FLOAT4 | Type::FLOAT8 => text.parse().ok().and_then(Number::from_f64).map(Value::Number),
        Type::NUMERIC => numeric(text),
        Type::JSON | Type::JSONB => serde_json::from_str(text).ok(),
        Type::TIMESTAMP | Type::TIMESTAMPTZ => Some(Value::from(time(text))),
        Type::BYTEA => text.strip_prefix("\\x").map(Value::from),
        _ => None,
    };
    read.unwrap_or_else(|| Value::from(text))
}

/// `None` for what a double would change, and for NaN and infinity.
fn numeric(text: &str) -> Option<Value> {
    if !text.contains('.')
        && let Ok(whole) = text.parse::<i64>()
    {
        return Some(Value::from(whole));
    }
    let digits = text.trim_start_matches(['-', '0', '.']).bytes().filter(u8::is_ascii_digit).count();
    let number = text.parse().ok().filter(|_| digits <= EXACT_DIGITS).and_then(Number::from_f64)?;
    Some(Value::Number(number))
}

/// `2026-01-31 12:00:00.5+00` as RFC 3339. Years before Christ and infinity stay as they are.
fn time(text: &str) -> String {
    match text.split_once(' ') {
        Some((date, clock)) if !clock.contains(' ') => {
            let clock = clock.strip_suffix("+00").map_or_else(|| clock.to_owned(), |clock| format!("{clock}Z"));
            format!("{date}T{clock}")
        }
        _ => text.to_owned(),
    }
}

/// Deeper than any array that PostgreSQL makes.
const MOST_DIMENSIONS: u32 = 16;

/// `{1,NULL,"a\"b"}` and `[0:1]={1,2}` as a list; `None` if it is neither.
fn array(text: &str, inner: &Type) -> Option<Value> {
    let start = if text.starts_with('[') { text.find('=')? + 1 } else { 0 };
    let mut reader = Array { rest: text.get(start..)?, inner };
    let value = reader.list(0)?;
    reader.rest.is_empty().then_some(value)
}

struct Array<'a> {
    rest: &'a str,
    inner: &'a Type,
}

impl Array<'_> {
    fn list(&mut self, depth: u32) -> Option<Value> {
        self.rest = self.rest.strip_prefix('{').filter(|_| depth < MOST_DIMENSIONS)?;
        let mut items = Vec::new();
        if let Some(rest) = self.rest.strip_prefix('}') {
            self.rest = rest;
            return Some(Value::Array(items));
        }
        loop {
            let item = match self.rest.as_bytes().first()? {
                b'{' => self.list(depth + 1)?,
                b'"' => self.quoted()?,
                _ => self.plain()?,
            };
            items.push(item);
            let end = self.rest.chars().next()?;
            self.rest = self.rest.get(end.len_utf8()..)?;
            match end {
                '}' => return Some(Value::Array(items)),
                // Boxes, which have commas within, are separated by semicolons.
                ',' | ';' => {}
                _ => return None,
            }
        }
    }

    fn plain(&mut self) -> Option<Value> {
        let end = self.rest.find([',', '}', ';'])?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(if text == "NULL" { Value::Null } else { value(Some(text), self.inner) })
    }

    fn quoted(&mut self) -> Option<Value> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        loop {
            match characters.next()? {
                (_, '\\') => text.push(characters.next()?.1),
                (place, '"') => {
                    self.rest = self.rest.get(place + 1..)?;
                    return Some(value(Some(&text), self.inner));
                }
                (_, character) => text.push(character),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_numbers_as_long_as_nothing_is_lost() {
        for (text, kind, expected) in [
            ("t", Type::BOOL, json!(true)),
            ("-7", Type::INT8, json!(-7)),
            ("4294967295", Type::OID, json!(4_294_967_295_u64)),
            ("0.1", Type::FLOAT8, json!(0.1)),
            ("NaN", Type::FLOAT8, json!("NaN")),
            ("12.50", Type::NUMERIC, json!(12.5)),
            ("-0.000123", Type::NUMERIC, json!(-0.000_123)),
            ("9223372036854775807", Type::NUMERIC, json!(i64::MAX)),
            ("9223372036854775808", Type::NUMERIC, json!("9223372036854775808")),
            ("0.1234567890123456", Type::NUMERIC, json!("0.1234567890123456")),
            ("Infinity", Type::NUMERIC, json!("Infinity")),
            ("{\"a\": [1]}", Type::JSONB, json!({"a": [1]})),
            ("2026-01-31 12:00:00.5+00", Type::TIMESTAMPTZ, json!("2026-01-31T12:00:00.5Z")),
            ("2026-01-31 12:00:00", Type::TIMESTAMP, json!("2026-01-31T12:00:00")),
            ("infinity", Type::TIMESTAMPTZ, json!("infinity")),
            ("0044-03-15 00:00:00 BC", Type::TIMESTAMP, json!("0044-03-15 00:00:00 BC")),
            ("\\x00ff", Type::BYTEA, json!("00ff")),
            ("P1DT2H", Type::INTERVAL, json!("P1DT2H")),
        ] {
            assert_eq!(value(Some(text), &kind), expected, "{text}");
        }
        assert_eq!(value(None, &Type::INT4), Value::Null);
    }

    #[test]
    fn arrays_are_lists() {
        for (text, kind, expected) in [
            ("{}", Type::INT4_ARRAY, json!([])),
            ("{1,NULL,3}", Type::INT4_ARRAY, json!([1, null, 3])),
            ("{{1,2},{3,4}}", Type::INT4_ARRAY, json!([[1, 2], [3, 4]])),
            ("[0:1]={5,6}", Type::INT4_ARRAY, json!([5, 6])),
            (r#"{a,"b,}\"\\",NULL,"NULL",""}"#, Type::TEXT_ARRAY, json!(["a", "b,}\"\\", null, "NULL", ""])),
            (r#"{"{\"a\": 1}"}"#, Type::JSONB_ARRAY, json!([{"a": 1}])),
            ("{(1,1),(0,0);(2,2),(1,1)}", Type::INT4, json!("{(1,1),(0,0);(2,2),(1,1)}")),
            ("{1", Type::INT4_ARRAY, json!("{1")),
            ("{1}2", Type::INT4_ARRAY, json!("{1}2")),
        ] {
            assert_eq!(value(Some(text), &kind), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_value(text in "[-{}\\[\\]=,;\"\\\\a0-9.:+ NUL]{0,40}") {
            for kind in [Type::TEXT_ARRAY, Type::NUMERIC_ARRAY, Type::NUMERIC, Type::TIMESTAMPTZ, Type::JSONB, Type::BYTEA] {
                let _ = value(Some(&text), &kind);
            }
            let deep = "{".repeat(100_000);
            prop_assert_eq!(value(Some(&deep), &Type::INT4_ARRAY), json!(deep));
        }

        #[test]
        fn what_is_quoted_comes_back(items in prop::collection::vec("\\PC{0,6}", 1..5)) {
            let quoted: Vec<String> = items.iter().map(|item| crate::parameter::quoted(item)).collect();
            let text = format!("{{{}}}", quoted.join(","));
            prop_assert_eq!(value(Some(&text), &Type::TEXT_ARRAY), json!(items));
        }
    }
}
