//! One round on its way from its program to its stored end, through as many runs of the program as that takes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fimble_toolkit::{Answers, Person, Progress, SessionContext};
use jiff::Timestamp;
use tokio::sync::watch;

use super::answer::{self, AnswerError};
use super::cards::Cards;
use super::execute::{ExecuteError, Executed, Order, Settle, Stage, end_cut_off_calls};
use super::paging;
use super::patience::{End, Patience, Suspension};
use super::plan::{self, Mode};
use super::progress::Steps;
use super::replay::{Replay, Teller};
use super::system::System;
use super::{Gate, MaskedStream, RoundGate};
use crate::crash;
use crate::event::{Custom, Event, EventKind};
use crate::interpreter::{self, Ending, Finished, Repeat, Run};
use crate::program::Program;
use crate::record::{CallRecord, CallStatus, Outcome, Round, RoundUsage, SessionStatus, WrittenVariable};
use crate::session::{Session, written_variable};
use crate::store::StoreError;

/// How long a program that was denied a call may take to end: for its `finally`, and for its last words.
const DENIED_GRACE: Duration = Duration::from_secs(5);

/// How often a round begins anew because its process went with its zygote, through no fault of its own.
const LOSSES: u32 = 3;

/// Characters of a call's arguments in [`Executed::calls`].
const LINE_CHARACTERS: usize = 100;

/// Why a variable is not kept.
const HOLDS_A_SECRET: &str = "it holds the value of a secret, and those are kept nowhere";

/// One round on its way to its end.
pub(super) struct Performance<'a, 'b> {
    pub stage: Stage<'a>,
    pub session: &'a mut Session,
    pub program: &'a Program,
    pub order: Order,
    pub settle: Settle<'b>,
}

/// How one run of the program went.
pub(super) struct Played {
    pub(super) finished: Finished,
    pub(super) host: Arc<RoundGate>,
    pub(super) was_killed: bool,
}

impl Performance<'_, '_> {
    /// Runs the program, again and again if it waits for something that comes while this process lives.
    pub async fn until_it_ends(
        mut self,
        mut round: Round,
        mut calls: Vec<CallRecord>,
        mut told: Vec<Event>,
    ) -> Result<Executed, ExecuteError> {
        let mut losses = 0;
        loop {
            let mode = match Mode::of(&calls) {
                Mode::Rejected(sentence) => return self.reject(round, sentence).await,
                Mode::Proposed(plan) => match self.propose(&mut round, plan).await? {
                    Some(executed) => return Ok(executed),
                    None => {
                        calls = self.session.calls(round.number).await?;
                        continue;
                    }
                },
                mode => mode,
            };
            let replay = Replay::of(calls);
            let replay = match &mode {
                Mode::Carry(plan) => replay.in_any_order(&plan.readings),
                _ => replay,
            };
            let has_acted = replay.has_calls();
            let played = match self.play(&round, replay, &told, mode.clone()).await {
                Ok(played) => played,
                // What may have acted is not ended by a failure of ours: it goes on from its journal.
                Err(error) if has_acted || matches!(error, ExecuteError::Store(_)) => return Err(error),
                Err(error) => {
                    // A round that did nothing is ended: nothing may look as if it still ran.
                    let stopped = Outcome::Stopped { limit: "crash".to_owned(), message: error.to_string() };
                    round.outcome = Some(stopped);
                    round.ended_at = Some(Timestamp::now());
                    self.session.commit_round(round, Vec::new(), Vec::new()).await?;
                    return Err(error);
                }
            };
            if matches!(played.finished.ending, Ending::Lost { .. })
                && losses < LOSSES
                && !self.stage.cancel.is_cancelled()
            {
                // The process went with others, by no fault of the program.
                losses += 1;
            } else if let Some(suspension) = self.suspension(&played) {
                let end = suspension.end;
                let (on, call) = (suspension.on.to_owned(), suspension.call);
                let executed =
                    self.pause(&mut round, &played, Outcome::Suspended { on, call }, suspension.text).await?;
                if !self.comes(end).await? {
                    return Ok(executed);
                }
                self.session.reopen_round();
            } else if let Some(plan) = self.drawn_up(&mode, &played) {
                self.take_usage(&mut round, &played.finished);
                if let Some(executed) = self.propose(&mut round, plan).await? {
                    return Ok(executed);
                }
            } else {
                return self.end(round, played).await;
            }
            told = self.session.events_of_open_round().await?;
            calls = self.session.calls(round.number).await?;
        }
    }

    /// Runs the program once. What it is told again is not told to front ends.
    async fn play(
        &mut self,
        round: &Round,
        replay: Replay,
        told: &[Event],
        mode: Mode,
    ) -> Result<Played, ExecuteError> {
        let Stage { gate, interpreter, attendant, cancel } = self.stage;
        let session = &mut *self.session;
        let context = SessionContext {
            session: session.record().id.clone(),
            round: round.number,
            trace: round.trace.clone(),
            tenant: session.record().tenant.clone(),
            user: session.record().user.clone(),
            ..SessionContext::default()
        };
        let killed = cancel.child_token();
        let goal = gate.secrets().mask(&self.order.goal);
        let wall_s = self.order.limits.wall_s;
        let entered = gate.live().enter(&context.session, round.number, &goal, wall_s, killed.clone());
        let repeat = Repeat { seed: round.seed.clone(), readings: replay.readings() };
        let effects = Arc::default();
        let scope = gate.scope_of(session);
        let declarations = gate.declarations_in(&scope);
        let teller = Teller::new(session.emitter(), told);
        let teller = if matches!(mode, Mode::Draw(_)) { teller.quiet() } else { teller };
        let patience = Arc::new(Patience::new(
            Arc::clone(attendant),
            Arc::clone(&entered.running),
            Arc::clone(&effects),
            gate.config.grace(),
        ));
        let system = Arc::new(System {
            effects: Arc::clone(&effects),
            teller: teller.clone(),
            patience: Some(Arc::clone(&patience)),
            declarations: Arc::clone(&declarations),
            describe_tokens: gate.config.describe_tokens,
            variables: session.variables().clone(),
            secrets: gate.secrets.clone(),
            longest_sleep: Duration::try_from_secs_f64(gate.config.sleep_s).unwrap_or_default(),
            begun: Default::default(),
        });
        let cards = Arc::new(Cards {
            effects: Arc::clone(&effects),
            teller: teller.clone(),
            patience: Arc::clone(&patience),
            secrets: gate.secrets.clone(),
            surfaces: Default::default(),
        });
        // What a toolkit asks in the middle of a call is asked like the program's own questions.
        let context = SessionContext {
            person: Person::new(Arc::clone(&system) as Arc<dyn Answers>),
            progress: Progress::new(Arc::new(Steps::new(teller.clone(), gate.secrets.clone(), &gate.config))),
            ..context
        };
        let host = Arc::new(RoundGate {
            gate: Arc::clone(gate),
            journal: session.journal(round.number),
            teller,
            context,
            program: round.hole.as_str().into(),
            running: Arc::clone(&entered.running),
            patience,
            system,
            cards,
            effects,
            replay,
            mode,
            scope,
            let_go: Default::default(),
            acting: watch::Sender::new(0),
            prints: Mutex::new(MaskedStream::new(gate.secrets.clone())),
        });
        let variables = session.carried(&self.program.names).await?;
        let run = Run {
            source: round.hole.clone(),
            file_name: self.order.file_name.clone(),
            paging: paging::reached(&declarations, &round.hole, &variables),
            variables,
            proxies: declarations.iter().map(|declaration| declaration.name.clone()).collect(),
            limits: self.order.limits.clone(),
            repeat: Some(repeat).filter(|repeat| !repeat.seed.is_empty()),
        };
        let ended = killed.child_token();
        let running = interpreter.run(run, Arc::clone(&host) as Arc<dyn interpreter::Host>, ended.clone());
        tokio::pin!(running);
        let mut flush = tokio::time::interval(gate.config.flush());
        flush.tick().await;
        // A program can catch the exception that ends it, and goes no further all the same.
        let effects = Arc::clone(&host.effects);
        let outlived_denial = async move {
            effects.over().await;
            tokio::time::sleep(DENIED_GRACE).await;
        };
        tokio::pin!(outlived_denial);
        let ran = loop {
            tokio::select! {
                ran = &mut running => break ran,
                // Toolkits that act are let finish, so that their results are in the journal.
                () = async { host.suspending().cancelled().await; host.quiet().await }, if !ended.is_cancelled() => ended.cancel(),
                () = &mut outlived_denial, if !ended.is_cancelled() => ended.cancel(),
                // Whoever follows from another process sees what happens while it happens.
                _ = flush.tick() => session.save().await?,
            }
        };
        drop(entered);
        let was_killed = killed.is_cancelled() && !cancel.is_cancelled();
        Ok(Played { finished: ran?, host, was_killed })
    }

    /// What the program waits for, if it does and was not ended by anything else meanwhile.
    fn suspension(&self, played: &Played) -> Option<Suspension> {
        let is_let_go = matches!(played.finished.ending, Ending::Cancelled) && !played.was_killed;
        let suspension = played.host.effects().take_suspension()?;
        let is_let_go = is_let_go && played.host.effects().ending().is_none();
        (is_let_go && !self.stage.cancel.is_cancelled()).then_some(suspension)
    }

    /// Stores the round as one that waits.
    async fn pause(
        &mut self,
        round: &mut Round,
        played: &Played,
        outcome: Outcome,
        text: String,
    ) -> Result<Executed, ExecuteError> {
        self.take_usage(round, &played.finished);
        round.output = self.stage.gate.secrets().mask(&played.finished.output);
        round.statements_done = played.finished.statements_done;
        self.session.set_status(match &outcome {
            Outcome::Suspended { on, .. } if [answer::QUESTION, answer::CARD].contains(&on.as_str()) => {
                SessionStatus::AwaitingUser
            }
            Outcome::Suspended { on, .. } if [answer::SLEEP, answer::TASK].contains(&on.as_str()) => {
                SessionStatus::AwaitingTask
            }
            _ => SessionStatus::AwaitingApproval,
        });
        round.outcome = Some(outcome);
        let mut executed = self.executed(round, played, Vec::new()).await?;
        executed.waiting = Some(text);
        self.tell_end(round, &executed);
        (self.settle)(self.session, &executed);
        self.session.commit_round(round.clone(), Vec::new(), Vec::new()).await?;
        crash::point("round suspended");
        Ok(executed)
    }

    /// Waits for the end of a suspension; true if the round can go on.
    pub(super) async fn comes(&mut self, end: End) -> Result<bool, ExecuteError> {
        let cancel = self.stage.cancel;
        let goes_on = match end {
            End::Elsewhere => false,
            End::Answer(asking) => tokio::select! {
                said = asking => match said.ok().flatten() {
                    Some(said) => match answer::answer(self.session, &said, self.stage.gate).await {
                        Ok(()) => true,
                        Err(AnswerError::Store(error)) => return Err(error.into()),
                        Err(_) => false,
                    },
                    None => false,
                },
                () = cancel.cancelled() => false,
            },
            End::After(_) if !self.stage.attendant.waits_out_sleep() => false,
            End::After(left) => tokio::select! {
                () = tokio::time::sleep(left) => true,
                () = cancel.cancelled() => false,
            },
            End::Task if !self.stage.attendant.waits_out_sleep() => false,
            End::Task => tokio::select! {
                moved = self.until_a_task_moves() => moved.map(|()| true)?,
                () = cancel.cancelled() => false,
            },
        };
        if goes_on {
            self.session.set_status(SessionStatus::Running);
        }
        Ok(goes_on)
    }

    /// Stores the round's end with all that it left.
    async fn end(&mut self, mut round: Round, played: Played) -> Result<Executed, ExecuteError> {
        let gate = self.stage.gate;
        // Not before: a round that runs again would show the rest after the beginning.
        played.host.end_prints();
        let emitter = self.session.emitter();
        end_cut_off_calls(self.session, Some(gate), &round, &emitter, Some(&played.host.let_go)).await?;
        let finished = &played.finished;
        let ran_on = matches!(finished.ending, Ending::Returned { .. } | Ending::Raised { .. });
        let diverged = played.host.effects().diverged().or_else(|| played.host.missing().filter(|_| ran_on));
        round.outcome = Some(match diverged {
            Some(message) => Outcome::Stopped { limit: "diverged".to_owned(), message },
            None => match self.swallowed(&played) {
                Some(message) => Outcome::Stopped { limit: "denied".to_owned(), message },
                None => outcome(gate, finished, played.was_killed),
            },
        });
        round.output = gate.secrets().mask(&finished.output);
        if let Mode::Carry(plan) = &played.host.mode {
            plan.notes().iter().for_each(|note| round.output.push_str(&format!("{note}\n")));
        }
        round.statements_done = finished.statements_done;
        round.ended_at = Some(Timestamp::now());
        self.take_usage(&mut round, finished);
        let keeps =
            !matches!(&round.outcome, Some(Outcome::Stopped { limit, .. }) if limit == "diverged" || limit == "denied");
        let (written, removed, not_carried) =
            if keeps { self.carry(&round, &played.finished) } else { Default::default() };
        round.written = written.iter().map(|written| written.variable.name.clone()).collect();
        round.removed.clone_from(&removed);
        round.not_kept = self.session.not_kept_after(&written, &not_carried);
        let executed = self.executed(&round, &played, not_carried).await?;
        self.tell_end(&round, &executed);
        (self.settle)(self.session, &executed);
        crash::point("round ended");
        self.session.commit_round(round, written, removed).await?;
        crash::point("round committed");
        self.stage.gate.keep_learnt().await;
        Ok(executed)
    }

    /// The sentence of a refused call whose exception the program did not end by: it caught it, or nobody waited for it.
    fn swallowed(&self, played: &Played) -> Option<String> {
        let sentence = played.host.effects().refused()?.sentence;
        let ended_by_it = match &played.finished.ending {
            Ending::Raised { exception, .. } => exception == "Denied",
            Ending::Cancelled => played.was_killed || self.stage.cancel.is_cancelled(),
            _ => false,
        };
        (!ended_by_it).then_some(sentence)
    }

    /// What of a program's variables the session may keep, the names that are gone, and those that are not kept.
    fn carry(&self, round: &Round, finished: &Finished) -> (Vec<WrittenVariable>, Vec<String>, Vec<(String, String)>) {
        let (gate, session) = (self.stage.gate, &self.session);
        // A name that holds what cannot be kept must not read as its older value in the next round.
        let mut removed = finished.removed.clone();
        let was_there = |name: &&String| session.variables().contains_key(*name);
        removed.extend(finished.not_carried.iter().map(|(name, _)| name).filter(was_there).cloned());
        // What is stored is shown and exported, and a masked value would no longer be the program's.
        let (secret, shown): (Vec<_>, Vec<_>) =
            finished.written.iter().cloned().partition(|captured| gate.secrets().finds(&captured.content));
        let written = shown.into_iter().map(|captured| {
            let mut written = written_variable(captured, round.number);
            written.variable.preview = gate.secrets().mask(&written.variable.preview);
            written
        });
        let (written, mut too_large) = session.fit(written.collect(), &removed);
        too_large.extend(secret.into_iter().map(|captured| (captured.name, HOLDS_A_SECRET.to_owned())));
        removed.extend(too_large.iter().map(|(name, _)| name).filter(was_there).cloned());
        removed.sort();
        removed.dedup();
        let not_carried = finished.not_carried.iter().map(|(name, reason)| (name.clone(), gate.secrets().mask(reason)));
        let not_carried = not_carried.chain(too_large).collect();
        (written, removed, not_carried)
    }

    pub(super) fn take_usage(&self, round: &mut Round, finished: &Finished) {
        let usage = &finished.usage;
        round.usage = RoundUsage {
            wall_ms: round.usage.wall_ms + usage.wall.as_secs_f64() * 1_000.0,
            cpu_ms: round.usage.cpu_ms + usage.cpu.as_secs_f64() * 1_000.0,
            peak_rss_kib: round.usage.peak_rss_kib.max(usage.peak_rss_kib),
            ..round.usage
        };
    }

    async fn executed(
        &mut self,
        round: &Round,
        played: &Played,
        not_carried: Vec<(String, String)>,
    ) -> Result<Executed, StoreError> {
        let (gate, effects) = (self.stage.gate, played.host.effects());
        let calls = self.session.calls(round.number).await?;
        Ok(Executed {
            round: round.number,
            hole: round.hole.clone(),
            outcome: round.outcome.clone().unwrap_or(Outcome::Finished { value: None }),
            output: round.output.clone(),
            replies: effects.replies(),
            answers: effects.answers(),
            cards: effects.cards(),
            finished: effects.finished(),
            waiting: None,
            refused: effects.refused(),
            contexts: effects.contexts(),
            calls: calls.iter().filter(|call| !plan::is_plan(call)).map(|call| call_line(gate, call)).collect(),
            written: round.written.clone(),
            not_carried,
        })
    }

    pub(super) fn tell_end(&self, round: &Round, executed: &Executed) {
        let (kind, message) = ending_words(executed);
        let value = match &executed.outcome {
            Outcome::Finished { value } => value.clone(),
            _ => None,
        };
        self.session.emitter().emit(EventKind::Custom(Custom::RoundEnded {
            outcome: kind.to_owned(),
            message,
            value,
            written: round.written.clone(),
            removed: round.removed.clone(),
            not_carried: executed.not_carried.clone(),
            wall_ms: round.usage.wall_ms,
            cpu_ms: round.usage.cpu_ms,
        }));
    }
}

fn outcome(gate: &Gate, finished: &Finished, was_killed: bool) -> Outcome {
    match &finished.ending {
        Ending::Returned { value } => {
            Outcome::Finished { value: value.as_deref().map(|value| gate.secrets().mask(value)) }
        }
        Ending::Raised { traceback, exception, statement, .. } => Outcome::Raised {
            traceback: gate.secrets().mask(traceback),
            statement: *statement,
            exception: gate.secrets().mask(exception),
        },
        Ending::Limit { limit, message } => Outcome::Stopped { limit: (*limit).to_owned(), message: message.clone() },
        Ending::Crashed { message } | Ending::Lost { message } => {
            Outcome::Stopped { limit: "crash".to_owned(), message: gate.secrets().mask(message) }
        }
        Ending::Cancelled if was_killed => Outcome::Stopped {
            limit: "killed".to_owned(),
            message: "a person ended the program with `fimble kill`; nothing that it assigned was kept".to_owned(),
        },
        Ending::Cancelled => {
            Outcome::Stopped { limit: "cancelled".to_owned(), message: "the user stopped the program".to_owned() }
        }
    }
}

fn ending_words(executed: &Executed) -> (&'static str, String) {
    match &executed.outcome {
        Outcome::Finished { .. } => ("finished", String::new()),
        Outcome::Raised { traceback, .. } => ("raised", traceback.clone()),
        Outcome::Suspended { .. } => ("suspended", executed.waiting.clone().unwrap_or_default()),
        Outcome::Stopped { message, .. } => ("stopped", message.clone()),
    }
}

/// `git_toolkit.log(limit=5)`, with what went wrong if it failed.
pub(super) fn call_line(gate: &Gate, call: &CallRecord) -> String {
    let arguments: Vec<String> = call.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut arguments = arguments.join(", ");
    if let Some((end, _)) = arguments.char_indices().nth(LINE_CHARACTERS) {
        arguments.truncate(end);
        arguments.push('…');
    }
    let line = format!("{}.{}({arguments})", call.toolkit, call.operation);
    let line = match &call.status {
        CallStatus::Done { .. } => line,
        CallStatus::Failed { error } => format!("{line} failed: {error}"),
        CallStatus::Waiting => format!("{line} waits for an approval"),
        CallStatus::Pending { .. } => format!("{line} waits for its task"),
        CallStatus::Approved | CallStatus::Requested => format!("{line} was cut off"),
    };
    gate.secrets().mask(&line)
}
