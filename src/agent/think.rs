//! Cognition: segments and scaffold become a request, the model's text becomes a checked program or a refusal.

use std::ops::ControlFlow;
use std::sync::Arc;

use fimble_toolkit::Declaration;

use super::{Agent, AgentError, Config, EncodingChoice, Progress, PromptParts};
use crate::crash;
use crate::event::{Custom, EventKind};
use crate::llm::{Completion, Finish, LlmError, Request};
use crate::program::{Failed, Known, Program, Refusal, Scaffold, ScaffoldInput, hole_end, splice};
use crate::prompt::{Encoding, PromptInput, TemplateError, assemble, fills_context, recent};
use crate::record::Variable;
use crate::segment::{Segment, SegmentKind};
use crate::session::{Emitter, Session};
use crate::store::StoreError;

/// How much warmer each further try of the same program is: the same words would come again.
const WARMER: f32 = 0.3;

/// Stands for the message where only what comes before it matters.
const HEAD: &str = "…";

/// What the model's text came to.
pub(super) enum Thought {
    /// It may run.
    Program(Program),
    /// It may not, and this is why.
    Refused(Refusal),
}

impl Agent {
    /// Asks the model for a hole and checks it.
    pub(super) async fn think(&self, session: &Session, progress: &mut Progress) -> Result<Thought, AgentError> {
        let variables: Vec<Variable> = session.variables().values().cloned().collect();
        let scaffold = self.parts.scaffold(&variables, progress);
        let encoding = self.encoding(progress.attempts.len());
        let declarations = self.parts.gate.declarations_of(session);
        let context_tokens = self.model.abilities().context_tokens;
        let request = |segments: &[Segment], earlier: u64, progress: &Progress, scaffold: &Scaffold| {
            let parts = &self.parts;
            let request =
                parts.request(&declarations, (segments, earlier), progress, scaffold, encoding, context_tokens);
            request.map_err(AgentError::Template)
        };
        let (goal, nothing) = (Segment::new(SegmentKind::User, 0, HEAD), Progress::of_message(HEAD, &self.config));
        self.model.prepare(&request(&[goal], 0, &nothing, &self.parts.scaffold(&[], &nothing))?).await;
        let mut request = request(session.segments(), session.earlier_segments(), progress, &scaffold)?;
        request.temperature += WARMER * progress.attempts.len() as f32;
        let completion = self.complete(&request, &session.emitter()).await?;
        crash::point("model answered");
        progress.spend(&completion);
        let is_cut = completion.finish == Finish::Length;
        let spliced = self.parts.splice(session, progress, &completion.text, is_cut).await;
        Ok(match spliced.and_then(|program| progress.refuse_repetition(program)) {
            Ok(program) => Thought::Program(program),
            Err(refusal) => Thought::Refused(refusal),
        })
    }

    /// The encoding of a try. Failures differ between encodings, so a refused program is tried in the other one.
    fn encoding(&self, refused: usize) -> Encoding {
        let abilities = self.model.abilities();
        let order = match (self.config.encoding, abilities.chat, abilities.fill) {
            (EncodingChoice::Fill, _, _) | (EncodingChoice::Auto, false, _) => [Encoding::Fill, Encoding::Fill],
            (EncodingChoice::Chat, _, _) | (EncodingChoice::Auto, true, false) => [Encoding::Chat, Encoding::Chat],
            (EncodingChoice::Auto, true, true) => [Encoding::Chat, Encoding::Fill],
        };
        order[refused % order.len()]
    }

    /// Streams the hole to the front end, and stops the model where the hole ends.
    async fn complete(&self, request: &Request, emitter: &Emitter) -> Result<Completion, LlmError> {
        let mut text = String::new();
        let mut show = |piece: &str| {
            text.push_str(piece);
            emitter.emit(EventKind::Custom(Custom::ProgramDelta { text: piece.to_owned() }));
            if hole_end(&text).is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let completion = self.model.complete(request, &mut show).await?;
        emitter.emit(EventKind::Custom(Custom::ModelUsage {
            model: self.model.name().to_owned(),
            prompt_tokens: completion.usage.prompt,
            cached_tokens: completion.usage.cached,
            completion_tokens: completion.usage.completion,
            duration_ms: completion.duration.as_secs_f64() * 1_000.0,
        }));
        Ok(completion)
    }
}

impl PromptParts {
    /// Reads as much of the conversation as a request to a model with that context can show.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn recollect(&self, session: &mut Session, context_tokens: Option<u32>) -> Result<(), StoreError> {
        session.reach_back(|segments| fills_context(segments, &self.prompt, context_tokens)).await
    }

    /// The request of the first round for `message` in `session`, as it would be sent. The message is appended to the
    /// session and not stored.
    ///
    /// # Errors
    /// A template of the user's that cannot be rendered.
    pub fn first_request(
        &self,
        session: &mut Session,
        message: &str,
        encoding: Encoding,
    ) -> Result<Request, TemplateError> {
        let earlier = session.earlier_segments();
        session.push(SegmentKind::User, message);
        let variables: Vec<Variable> = session.variables().values().cloned().collect();
        let progress = Progress::of_message(message, &Config::default());
        let declarations = self.gate.declarations_of(session);
        let scaffold = self.scaffold(&variables, &progress);
        self.request(&declarations, (session.segments(), earlier), &progress, &scaffold, encoding, None)
    }

    /// A program whose hole is `text`, or why it may not run. `is_cut` says that the text may end in the middle of a word.
    pub(super) async fn splice(
        &self,
        session: &Session,
        progress: &Progress,
        text: &str,
        is_cut: bool,
    ) -> Result<Program, Refusal> {
        let variables: Vec<Variable> = session.variables().values().cloned().collect();
        let known = Known {
            declarations: &self.gate.declarations_of(session),
            carried: &variables,
            shapes: &session.shapes(text).await,
            not_kept: session.not_kept(),
            finish_length: is_cut,
            config: &self.program,
        };
        splice(&self.scaffold(&variables, progress), text, &known)
    }

    fn scaffold(&self, variables: &[Variable], progress: &Progress) -> Scaffold {
        let failed = progress.failed.as_ref();
        Scaffold::new(&ScaffoldInput {
            goal: &progress.goal,
            variables,
            max_variables_shown: self.program.max_variables_shown,
            done: &progress.done,
            failed: failed.map(|failed| Failed { statement: &failed.statement, traceback: &failed.traceback }),
        })
    }

    /// `segments` are the end of a conversation, and `earlier` is how many there are before them.
    fn request(
        &self,
        declarations: &Arc<Vec<Declaration>>,
        (segments, earlier): (&[Segment], u64),
        progress: &Progress,
        scaffold: &Scaffold,
        encoding: Encoding,
        context_tokens: Option<u32>,
    ) -> Result<Request, TemplateError> {
        let (segments, left_out) = recent(segments, &self.prompt, context_tokens);
        let masked = |segment: &Segment| {
            let content = self.gate.secrets().mask(&segment.content);
            Segment { content, ..segment.clone() }
        };
        let segments: Vec<Segment> = segments.into_iter().map(masked).collect();
        assemble(&PromptInput {
            encoding,
            declarations,
            segments: &segments,
            earlier: left_out.saturating_add(usize::try_from(earlier).unwrap_or(usize::MAX)),
            prefix: &self.gate.secrets().mask(&scaffold.prefix),
            suffix: &scaffold.suffix,
            attempts: &progress.attempts,
            context_tokens,
            templates: &self.templates,
            config: &self.prompt,
        })
    }
}
