//! The one way from what is known to a request.

use std::collections::BTreeSet;
use std::sync::Arc;

use fimble_toolkit::Declaration;
use minijinja::context;

use super::budget::{Kept, bounded, keep, newest};
use super::chat::{say, turn};
use super::described::likely;
use super::fill::{STOP, comment, part, program};
use super::stubs::{Budget, Stubs};
use super::{Config, Encoding, PromptInput, TemplateError};
use crate::llm::{Input, Message, Request, Role};
use crate::segment::{Segment, SegmentKind, estimate_tokens};

/// The request for the hole of a program.
///
/// What does not fit into the context is left out, oldest first; never the user's last words, what is pinned, or the
/// program itself. If those alone do not fit, the request is as short as it can be, and the model's port says so.
///
/// # Errors
/// A template of the user's that asks for something that is not there.
pub fn assemble(input: &PromptInput<'_>) -> Result<Request, TemplateError> {
    let built = match input.encoding {
        Encoding::Chat => Input::Chat(chat(input)?),
        Encoding::Fill => fill(input)?,
    };
    let stop = match input.encoding {
        Encoding::Chat => Vec::new(),
        Encoding::Fill => STOP.map(str::to_owned).to_vec(),
    };
    Ok(Request { input: built, max_tokens: input.config.max_tokens, temperature: input.config.temperature, stop })
}

fn chat(input: &PromptInput<'_>) -> Result<Vec<Message>, TemplateError> {
    let example_prefix = format!("# goal: {}\ntry:\n", question(input)?);
    let mut messages =
        vec![Message { role: Role::System, content: input.templates.render("system.md.j2", head_context(input))? }];
    say(&mut messages, Role::User, &format!("{}\n\n{}", question(input)?, request(input, &example_prefix)?));
    say(&mut messages, Role::Assistant, &example(input)?);

    let mut ending = Vec::new();
    say(&mut ending, Role::User, &request(input, &noted_prefix(input))?);

    let fixed = messages.iter().chain(&ending).map(|message| &message.content);
    let fixed = fixed.map(|content| estimate_tokens(content).saturating_add(MESSAGE_TOKENS)).sum();
    let Kept { segments, left_out } =
        keep(input.segments, input.earlier, room(input, fixed), |segment| shown_tokens(input.config, segment));
    if left_out > 0 {
        say(&mut messages, Role::User, &left_out_mark(left_out));
    }
    for segment in segments {
        let (role, text) = turn(segment, &shown(input, segment));
        say(&mut messages, role, &text);
    }
    for message in ending {
        say(&mut messages, message.role, &message.content);
    }
    Ok(messages)
}

fn fill(input: &PromptInput<'_>) -> Result<Input, TemplateError> {
    let mut parts = vec![
        input.templates.render("head.py.j2", head_context(input))?,
        comment("User", &question(input)?),
        program(&example(input)?, input.suffix),
    ];
    let ending = vec![noted_prefix(input)];
    let fixed = parts.iter().chain(&ending).map(|part| estimate_tokens(part)).sum();
    let Kept { segments, left_out } =
        keep(input.segments, input.earlier, room(input, fixed), |segment| shown_tokens(input.config, segment));
    if left_out > 0 {
        parts.push(format!("# {}", left_out_mark(left_out)));
    }
    parts.extend(segments.into_iter().map(|segment| part(segment, &shown(input, segment), input.suffix)));
    parts.extend(ending);
    Ok(Input::Fill { prefix: parts.join("\n\n"), suffix: input.suffix.to_owned() })
}

/// The program's prefix with a comment for each thing that an earlier try was refused for, above the goal: comments right
/// before the hole are gone on with for ever. The refused text itself is not shown, because a small model writes again
/// what it sees.
fn noted_prefix(input: &PromptInput<'_>) -> String {
    let mut seen = BTreeSet::new();
    let notes = input.attempts.iter().flat_map(|attempt| &attempt.notes).filter(|note| seen.insert(*note));
    let notes: String = notes.map(|note| format!("# careful: {}\n", note.replace('\n', "\n#   "))).collect();
    let likely = likely(input, &stubs(input).briefly(input.declarations));
    match input.prefix.rfind("# goal: ") {
        Some(goal) => format!("{}{likely}{notes}{}", &input.prefix[..goal], &input.prefix[goal..]),
        None => format!("{likely}{notes}{}", input.prefix),
    }
}

/// Tokens that a message takes beside its content.
const MESSAGE_TOKENS: u32 = 6;

/// Tokens that are there for the conversation. The estimate may be 10 % short.
fn room(input: &PromptInput<'_>, fixed: u32) -> u32 {
    let context = context_tokens(input);
    context.saturating_sub(context / 10).saturating_sub(input.config.max_tokens).saturating_sub(fixed)
}

fn context_tokens(input: &PromptInput<'_>) -> u32 {
    input.context_tokens.unwrap_or(input.config.context_tokens)
}

fn head_context(input: &PromptInput<'_>) -> minijinja::Value {
    context! {
        stubs => &stubs(input).text,
        operations => operations(input.declarations),
        packages => &input.config.packages,
    }
}

fn stubs(input: &PromptInput<'_>) -> Arc<Stubs> {
    input.templates.stubs.get(input.declarations, budget(input))
}

/// The stubs must leave room for what is said.
fn budget(input: &PromptInput<'_>) -> Budget {
    let whole = input.config.stub_tokens.min(context_tokens(input) / 2);
    Budget { whole, names: input.config.name_tokens.min(whole / 2) }
}

fn operations(declarations: &[Declaration]) -> Vec<String> {
    let operations = declarations.iter().flat_map(|declaration| {
        let enabled = declaration.operations.iter().filter(|operation| operation.enabled);
        enabled.map(|operation| format!("{}.{}", declaration.name, operation.name))
    });
    operations.collect()
}

fn question(input: &PromptInput<'_>) -> Result<String, TemplateError> {
    input.templates.render("example_question.md.j2", context! { operations => operations(input.declarations) })
}

fn example(input: &PromptInput<'_>) -> Result<String, TemplateError> {
    input.templates.render("example_program.py.j2", context! { operations => operations(input.declarations) })
}

fn request(input: &PromptInput<'_>, prefix: &str) -> Result<String, TemplateError> {
    input.templates.render("request.md.j2", context! { prefix, suffix => input.suffix })
}

fn shown(input: &PromptInput<'_>, segment: &Segment) -> String {
    match segment.kind {
        SegmentKind::Output => bounded(&segment.content, input.config.output_tokens),
        _ => segment.content.clone(),
    }
}

fn shown_tokens(config: &Config, segment: &Segment) -> u32 {
    as_shown(config, segment, estimate_tokens(&segment.content))
}

fn as_shown(config: &Config, segment: &Segment, tokens: u32) -> u32 {
    let tokens = if segment.kind == SegmentKind::Output { tokens.min(config.output_tokens) } else { tokens };
    tokens.saturating_add(MESSAGE_TOKENS)
}

/// Whether these segments, the newest of a conversation, are all that a request can show: older ones have no room.
/// `context_tokens` as in [`PromptInput`].
pub fn fills_context(segments: &[Segment], config: &Config, context_tokens: Option<u32>) -> bool {
    let tokens = segments.iter().map(|segment| u64::from(as_shown(config, segment, segment.tokens))).sum::<u64>();
    tokens >= looked_at(config, context_tokens) && segments.iter().any(|segment| segment.kind == SegmentKind::User)
}

/// The newest of these segments, which are all that a request can show, and how many are left out.
pub fn recent<'a>(segments: &'a [Segment], config: &Config, context_tokens: Option<u32>) -> (Vec<&'a Segment>, usize) {
    newest(segments, looked_at(config, context_tokens), |segment| as_shown(config, segment, segment.tokens))
}

/// Twice the context: a secret takes fewer tokens once it is masked.
fn looked_at(config: &Config, context_tokens: Option<u32>) -> u64 {
    u64::from(context_tokens.unwrap_or(config.context_tokens)) * 2
}

fn left_out_mark(count: usize) -> String {
    format!("[{count} earlier segments left out]")
}
