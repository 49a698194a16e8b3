//! Notices that a server cut the prompt without saying so: its token count is far below any possible one. It does not
//! know what the prompt is for.

use super::{LlmError, TokenUsage};

/// Prompts below this many tokens are not judged: a chat template or a cache may blur the count.
const JUDGED_FROM: u32 = 500;

/// The error if the server counted less than 60 % of the fewest tokens that `texts` can be.
pub(super) fn silent_cut<'a>(
    texts: impl Iterator<Item = &'a str>,
    usage: TokenUsage,
    context_tokens: Option<u32>,
) -> Option<LlmError> {
    let fewest = texts.map(fewest_tokens).fold(0, u32::saturating_add);
    let is_cut = fewest > JUDGED_FROM && usage.prompt > 0 && u64::from(usage.prompt) * 10 < u64::from(fewest) * 6;
    is_cut.then(|| LlmError::Overflow {
        message: format!(
            "the server cut the prompt without saying so: it read {} of about {fewest} tokens",
            usage.prompt
        ),
        prompt_tokens: Some(fewest),
        context_tokens,
    })
}

/// A low estimate. The usual one is for budgets and errs on the high side for indented text and other scripts (threefold
/// for Russian and Chinese with Qwen's tokenizer); here a high one would turn a healthy answer into an error. A run of
/// spaces or of punctuation counts once, and four letters of another script are taken for one token.
fn fewest_tokens(text: &str) -> u32 {
    let (mut ascii, mut others) = (0_usize, 0_usize);
    let mut last = Class::Letter;
    for letter in text.chars() {
        let class = Class::of(letter);
        match class {
            Class::Other => others += 1,
            Class::Letter => ascii += 1,
            Class::Space | Class::Mark => ascii += usize::from(class != last),
        }
        last = class;
    }
    u32::try_from(ascii / 4 + others / 4).unwrap_or(u32::MAX)
}

#[derive(PartialEq, Clone, Copy)]
enum Class {
    Letter,
    Space,
    Mark,
    Other,
}

impl Class {
    fn of(letter: char) -> Self {
        match letter {
            _ if letter.is_ascii_alphanumeric() => Class::Letter,
            _ if letter.is_ascii_whitespace() => Class::Space,
            _ if letter.is_ascii() => Class::Mark,
            _ => Class::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, prompt: u32) -> bool {
        let usage = TokenUsage { prompt, cached: 0, completion: 1 };
        silent_cut([text].into_iter(), usage, None).is_some()
    }

    #[test]
    fn a_count_far_below_the_fewest_tokens_is_a_cut() {
        let prose = "The quick brown fox jumps over the lazy dog. ".repeat(100);
        assert!(cut(&prose, 512));
        assert!(!cut(&prose, 1_001));
    }

    #[test]
    fn a_missing_count_a_short_prompt_and_dense_text_are_none() {
        let prose = "The quick brown fox jumps over the lazy dog. ".repeat(100);
        assert!(!cut(&prose, 0));
        assert!(!cut("The quick brown fox. ", 1));
        let indented = format!("{:40}\"x\": 1,\n", "").repeat(300);
        assert!(!cut(&indented, 6 * 300));
        let russian = "Перезапусти упавшие службы на этой машине. ".repeat(100);
        assert!(!cut(&russian, 1_000));
        assert!(!cut(&"-=-=".repeat(1_000), 254));
    }
}
