//! What is masked, and that it does not matter how a text comes.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn secrets_are_masked_in_nested_strings_keys_and_numbers() {
    let secrets = Secrets::new(["hunter22".to_owned(), "ab".to_owned(), "1234567890".to_owned()]);
    let mut value = json!({"a": ["x hunter22 y", 1, 1_234_567_890], "hunter22": {"ab": "ab"}});
    secrets.mask_value(&mut value);
    assert_eq!(value, json!({"a": ["x ******** y", 1, "********"], "********": {"ab": "ab"}}));
}

#[test]
fn secrets_that_overlap_are_masked_whole() {
    let secrets = Secrets::new(["secret".to_owned(), "secret-long".to_owned(), "long-tail".to_owned()]);
    assert_eq!(secrets.mask("a secret-long b secret c secret-long-tail"), "a ******** b ******** c ********");
}

#[test]
fn what_is_added_later_is_masked_by_all_who_share_them() {
    let secrets = Secrets::new(Vec::new());
    let shared = secrets.clone();
    assert_eq!(shared.mask("hunter22"), "hunter22");
    secrets.add(["hunter22".to_owned()]);
    assert_eq!((shared.mask("hunter22").as_str(), format!("{shared:?}").as_str()), ("********", "Secrets(1)"));
}

#[test]
fn each_line_of_a_key_is_a_secret() {
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n";
    let secrets = Secrets::new([key.to_owned()]);
    assert_eq!(secrets.mask(key), "********");
    assert_eq!(secrets.mask("x hkiG9w0BAQEFAASC y"), "x ******** y");
    assert_eq!(secrets.mask("-----BEGIN KEY-----"), "-----BEGIN KEY-----");
}

#[test]
fn a_print_in_two_pieces_shows_no_half_of_a_secret() {
    let mut stream = MaskedStream::new(Secrets::new(["hunter22".to_owned()]));
    let shown = [stream.push("it is hun"), stream.push("ter22!\n"), stream.push("so hunt"), stream.finish()];
    assert_eq!(shown, ["it is ", "********!\n", "so ", "hunt"]);
}

#[test]
fn the_forms_that_people_meet_are_masked() {
    let secret = "p@ss wörd/\"1\\2'";
    let secrets = Secrets::new([secret.to_owned()]);
    let written = [
        "p%40ss%20w%C3%B6rd%2F%221%5C2%27",
        "p%40ss%20w%c3%b6rd/%221%5c2%27",
        "p%40ss+w%C3%B6rd%2F%221%5C2%27",
        "p%40ss%20w%C3%B6rd%2F%221%5C2'",
        "p@ss wörd/\\\"1\\\\2'",
        "p@ss w\\u00f6rd/\\\"1\\\\2'",
        "p@ss w\\u00F6rd/\\\"1\\\\2'",
        "p@ss wörd\\/\\\"1\\\\2'",
        "p@ss wörd/\\\\\\\"1\\\\\\\\2'",
        "p@ss wörd/\"1\\\\2\\'",
        "p@ss wörd/&quot;1\\2&#39;",
        "70407373 2077c3b672642f22315c3227",
    ];
    for text in &written[..written.len() - 1] {
        assert_eq!(secrets.mask(&format!("a {text} b")), "a ******** b", "{text}");
    }
    let hexadecimal = written[written.len() - 1].replace(' ', "");
    assert_eq!(secrets.mask(&hexadecimal), "********");
    assert_eq!(secrets.mask(&hexadecimal.to_uppercase()), "********");
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_end_of_a_secret_that_was_held_back_stays_masked_whatever_comes() {
    let secrets = Secrets::new(["baaabab".to_owned()]);
    for pieces in [&["ba", "aabab", ""][..], &["baaabab", "", "", "a"], &["baaaba", "b", "", "aaabab"]] {
        let mut stream = MaskedStream::new(secrets.clone());
        let mut shown: String = pieces.iter().map(|piece| stream.push(piece)).collect();
        shown.push_str(&stream.finish());
        assert_eq!(shown, secrets.mask(&pieces.concat()), "{pieces:?}");
    }
}

proptest! {
    /// Whatever stands before and behind it, the characters of Base64 that are the secret's alone are gone.
    #[test]
    fn base64_is_masked_at_any_place(
        secret in "[ -)+-~]{6,40}",
        before in proptest::collection::vec(any::<u8>(), 0..9),
        behind in proptest::collection::vec(any::<u8>(), 0..9),
    ) {
        prop_assume!(secret.trim().len() >= SHORTEST);
        let secrets = Secrets::new([secret.clone()]);
        let whole = [before.as_slice(), secret.as_bytes(), behind.as_slice()].concat();
        for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
            let text = engine.encode(&whole);
            let masked = secrets.mask(&text);
            prop_assert!(masked.contains(MASK), "{text} became {masked}");
            // At most the two characters that it shares with its neighbours are left of it.
            let kept = masked.chars().filter(|character| !"*=".contains(*character)).count();
            let others = (before.len() * 8).div_ceil(6) + (behind.len() * 8).div_ceil(6) + 2;
            prop_assert!(kept <= others, "{text} became {masked}");
        }
    }

    #[test]
    fn no_form_of_a_secret_is_left(
        secret in "\\PC{6,30}",
        before in "[a-z ]{0,6}",
        behind in "[a-z ]{0,6}",
    ) {
        prop_assume!(secret.trim().len() >= SHORTEST && secret.trim().bytes().any(|byte| byte != b'*'));
        let secrets = Secrets::new([secret.clone()]);
        let json = json!({ "text": format!("{before}{secret}{behind}") }).to_string();
        for text in [
            format!("{before}{secret}{behind}"),
            format!("{before}{}{behind}", hexadecimal(secret.as_bytes())),
            json.clone(),
            json!(json).to_string(),
        ] {
            let masked = secrets.mask(&text);
            prop_assert!(masked.contains(MASK), "{text} became {masked}");
            prop_assert!(!masked.contains(secret.trim()) || MASK.contains(secret.trim()), "{text} became {masked}");
        }
    }

    #[test]
    fn a_stream_shows_what_the_whole_text_would(
        secrets in proptest::collection::vec("[ab]{6,9}", 0..3),
        pieces in proptest::collection::vec("[abé]{0,12}", 0..12),
    ) {
        let secrets = Secrets::new(secrets);
        let mut stream = MaskedStream::new(secrets.clone());
        let mut shown: String = pieces.iter().map(|piece| stream.push(piece)).collect();
        shown.push_str(&stream.finish());
        prop_assert_eq!(shown, secrets.mask(&pieces.concat()));
    }

    #[test]
    fn any_text_and_value_is_masked_without_harm(values in proptest::collection::vec(any::<String>(), 0..4), text in any::<String>()) {
        let secrets = Secrets::new(values);
        let mut stream = MaskedStream::new(secrets.clone());
        let shown = stream.push(&text) + &stream.finish();
        prop_assert_eq!(shown, secrets.mask(&text));
    }
}
