//! What looks like a key, a token or a private key by its form, whoever's it is.

use super::{Analyser, in_texts};
use crate::gate::policy::Subject;

/// How keys begin, how many characters follow at least, and what they are.
const FORMS: [(&str, usize, &str); 16] = [
    ("AKIA", 16, "an access key of AWS"),
    ("ASIA", 16, "an access key of AWS"),
    ("AIza", 35, "a key of Google"),
    ("ghp_", 36, "a token of GitHub"),
    ("gho_", 36, "a token of GitHub"),
    ("ghs_", 36, "a token of GitHub"),
    ("github_pat_", 22, "a token of GitHub"),
    ("glpat-", 20, "a token of GitLab"),
    ("xoxb-", 20, "a token of Slack"),
    ("xoxp-", 20, "a token of Slack"),
    ("sk-ant-", 20, "a key of Anthropic"),
    ("sk-proj-", 20, "a key of OpenAI"),
    ("sk_live_", 20, "a key of Stripe"),
    ("npm_", 36, "a token of npm"),
    ("pypi-", 50, "a token of PyPI"),
    ("hf_", 34, "a token of Hugging Face"),
];

pub(super) struct Credentials;

impl Analyser for Credentials {
    fn analyse(&self, call: &Subject<'_>) -> Option<String> {
        let what = in_texts(call.arguments, &mut found)?;
        Some(format!("would send what looks like {what}"))
    }
}

fn found(text: &str) -> Option<&'static str> {
    if text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----") {
        return Some("a private key");
    }
    let by_form = FORMS.iter().find(|(beginning, follow, _)| {
        text.match_indices(beginning).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let rest = &text[at + beginning.len()..];
            // In the middle of a word it is no beginning.
            !before.is_some_and(|character| character.is_ascii_alphanumeric())
                && rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count()
                    >= *follow
        })
    });
    by_form.map(|(_, _, what)| *what).or_else(|| has_web_token(text).then_some("a signed token (JWT)"))
}

/// Three parts of Base64 with dots between, of which two begin with `{"`.
fn has_web_token(text: &str) -> bool {
    text.match_indices("eyJ").any(|(at, _)| {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let length = text.as_bytes()[at..].iter().take_while(|byte| is_part(byte)).count();
        let mut parts = text[at..at + length].split('.');
        let (head, body, signature) = (parts.next(), parts.next(), parts.next());
        head.is_some_and(|part| part.len() >= 10)
            && body.is_some_and(|part| part.len() >= 10 && part.starts_with("eyJ"))
            && signature.is_some_and(|part| part.len() >= 16)
    })
}
