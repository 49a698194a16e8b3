//! The ways in which a value may be written so that whoever reads the text has the value. It does not know where the text
//! comes from.

use std::collections::BTreeSet;

use base64::Engine;
use base64::alphabet::Alphabet;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

use super::{LONGEST, SHORTEST};

/// Shorter lines of a value of many lines are ordinary text.
const SHORTEST_LINE: usize = 12;

/// Adds all forms of `value`: as it is, line by line, and each of those in Base64 (at any place of what was encoded, both
/// alphabets, padded or not), percent-encoded, hexadecimal, and escaped for JSON (once and twice), Python and HTML. Parts
/// that are shorter than [`SHORTEST`] are left out, and what is longer than [`LONGEST`] is looked for in pieces.
pub(super) fn add(value: &str, forms: &mut BTreeSet<String>) {
    let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE && !line.starts_with("-----"));
    let whole = [value, value.trim()].into_iter();
    for part in whole.chain(lines).flat_map(pieces).filter(|part| part.len() >= SHORTEST) {
        forms.insert(part.to_owned());
        add_base64(part.as_bytes(), forms);
        add_percent(part.as_bytes(), forms);
        add_hexadecimal(part.as_bytes(), forms);
        add_escaped(part, forms);
    }
    // A mask would be found in its own output.
    forms.retain(|form| form.len() >= SHORTEST && form.bytes().any(|byte| byte != b'*'));
}

/// The value, or parts of it that are short enough to be looked for.
fn pieces(value: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), value);
    while rest.len() > LONGEST {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(LONGEST));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

fn add_base64(value: &[u8], forms: &mut BTreeSet<String>) {
    let encoded = |alphabet: &Alphabet, padded: bool, bytes: &[u8]| {
        GeneralPurpose::new(alphabet, GeneralPurposeConfig::new().with_encode_padding(padded)).encode(bytes)
    };
    // How many bytes stand before it, modulo three, and how many characters those have a part in.
    for (before, shared) in [(0, 0), (1, 2), (2, 3)] {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(value);
        let determined = bytes.len() * 8 / 6;
        for alphabet in [&STANDARD, &URL_SAFE] {
            // Followed by anything, at the end without padding, and with it.
            let bare = encoded(alphabet, false, &bytes);
            let padded = encoded(alphabet, true, &bytes);
            let ends = [bare.get(shared..determined), bare.get(shared..), padded.get(shared..)];
            forms.extend(ends.into_iter().flatten().map(str::to_owned));
        }
    }
}

fn add_percent(value: &[u8], forms: &mut BTreeSet<String>) {
    // What encoders leave as it is, beside letters, digits and `-_.`: RFC 3986, Python's `quote`, JavaScript's
    // `encodeURIComponent` and `encodeURI`, forms; or nothing at all.
    for kept in ["~", "~/", "~!'()*", "~!'()*;/?:@&=+$,#", "*"] {
        let is_kept =
            |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) || kept.as_bytes().contains(&byte);
        for digits in [UPPER, LOWER] {
            for space in ["%20", "+"] {
                let mut text = String::with_capacity(value.len() * 2);
                for byte in value {
                    match byte {
                        b' ' => text.push_str(space),
                        byte if is_kept(*byte) => text.push(char::from(*byte)),
                        byte => push_percent(&mut text, *byte, digits),
                    }
                }
                forms.insert(text);
            }
        }
    }
    for digits in [UPPER, LOWER] {
        let mut text = String::with_capacity(value.len() * 3);
        value.iter().for_each(|byte| push_percent(&mut text, *byte, digits));
        forms.insert(text);
    }
}

const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";

fn push_percent(text: &mut String, byte: u8, digits: &[u8; 16]) {
    text.push('%');
    push_hexadecimal(text, byte, digits);
}

fn push_hexadecimal(text: &mut String, byte: u8, digits: &[u8; 16]) {
    text.push(char::from(digits[usize::from(byte >> 4)]));
    text.push(char::from(digits[usize::from(byte & 15)]));
}

fn add_hexadecimal(value: &[u8], forms: &mut BTreeSet<String>) {
    for digits in [UPPER, LOWER] {
        // As `hex()`, as `hex(":")` or a dump writes it, and as escapes of bytes.
        for (before, between) in [("", ""), ("", ":"), ("", " "), ("\\x", "")] {
            let mut text = String::with_capacity(value.len() * 4);
            for (index, byte) in value.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { between });
                text.push_str(before);
                push_hexadecimal(&mut text, *byte, digits);
            }
            forms.insert(text);
        }
    }
}

fn add_escaped(value: &str, forms: &mut BTreeSet<String>) {
    let once = json(value);
    let ascii = ascii(&once, false);
    let upper = self::ascii(&once, true);
    let slashes = once.replace('/', "\\/");
    let twice = [json(&once), json(&ascii), json(&slashes)];
    forms.extend(twice);
    forms.extend([once, ascii, upper, slashes]);
    // `repr` of Python prefers single quotes and escapes those within.
    forms.insert(value.replace('\\', "\\\\"));
    forms.insert(value.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n"));
    let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    forms.insert(html.replace('"', "&quot;").replace('\'', "&#39;"));
    forms.insert(html.replace('"', "&quot;").replace('\'', "&#x27;"));
    forms.insert(html);
}

/// As a JSON string, without its quotes.
fn json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// JSON text with its other scripts escaped.
fn ascii(text: &str, upper: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") });
        }
    }
    escaped
}
