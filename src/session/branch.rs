//! A session as it was after an earlier round: as a new one beside it, or in its place.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::Session;
use super::cut::{goal_of_way_back, segments_until, undone_by};
use crate::crash;
use crate::record::{Outcome, Round, RoundUsage, SessionRecord, SessionStatus, Variable};
use crate::store::check::is_open;
use crate::store::{Rewind, StoreError, family};

/// How often another id is tried for a fork whose id is taken: one of four thousand million.
const TRIES: usize = 4;

/// Why there is no such way.
#[derive(Debug, thiserror::Error)]
pub enum BranchError {
    /// The session has no round of that number.
    #[error("there is no round {round}; the session has {last}")]
    NoRound {
        /// The number that was asked for.
        round: u64,
        /// The last one.
        last: u64,
    },
    /// What the round leaves is not known yet.
    #[error("round {0} has not ended")]
    Open(u64),
    /// The session went back behind it, and what was said in it is no more.
    #[error("round {round} was undone by round {by}, which went back behind it")]
    Undone {
        /// The number that was asked for.
        round: u64,
        /// The round that went back.
        by: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Session {
    /// Stores a new session that is as this one was after that round, by default the last one that has ended; 0 is the
    /// beginning. Nothing of this one changes. Contents of variables are shared, so that a fork of a large session is cheap;
    /// it has events of its own, from 1.
    ///
    /// # Errors
    /// There is no such round, or what it left is not known; `Stale` if another process went on with the session meanwhile.
    pub async fn fork(&self, at: Option<u64>) -> Result<SessionRecord, BranchError> {
        let rounds = self.rounds(0).await?;
        let ended = rounds.iter().rev().find(|round| !is_open(round.outcome.as_ref()));
        let at = at.unwrap_or_else(|| ended.map_or(0, |round| round.number));
        self.settled(&rounds, at)?;
        let mut stored = self.all_segments().await?;
        stored.truncate(stored.len() - (self.segments.len() - self.saved));
        let now = Timestamp::now();
        let mut fork = SessionRecord {
            id: family::new_member(&self.record.id),
            status: SessionStatus::Idle,
            created_at: now,
            updated_at: now,
            rounds: at,
            segments: segments_until(&stored, at) as u64,
            events: 0,
            turn: None,
            ..self.record.clone()
        };
        for _ in 1..TRIES {
            match self.store.fork_session(&self.record.id, &fork).await {
                Err(StoreError::AlreadyExists(_)) => fork.id = family::new_member(&self.record.id),
                stored => {
                    crash::point("session forked");
                    return stored.map(|()| fork).map_err(Into::into);
                }
            }
        }
        self.store.fork_session(&self.record.id, &fork).await?;
        Ok(fork)
    }

    /// Takes the session back to the end of that round, 0 being the beginning: its variables and segments are those of then,
    /// and no turn is under way. That is a round of its own, which is returned; those between stay, with their calls and
    /// versions.
    ///
    /// # Errors
    /// As of [`fork`](Self::fork); then nothing has changed.
    pub async fn rewind(&mut self, at: u64) -> Result<Round, BranchError> {
        self.save().await?;
        self.reach_back(|_| false).await?;
        let rounds = self.rounds(0).await?;
        self.settled(&rounds, at)?;
        let number = self.record.rounds + 1;
        let then = self.variables_at(at).await?;
        let names: BTreeSet<&String> = then.iter().map(|variable| &variable.name).collect();
        let removed: Vec<String> = self.variables.keys().filter(|name| !names.contains(name)).cloned().collect();
        let is_same = |variable: &Variable| {
            let now = self.variables.get(&variable.name);
            now.is_some_and(|now| (&now.hash, now.kind) == (&variable.hash, variable.kind))
        };
        let changed = then.into_iter().filter(|variable| !is_same(variable));
        let written: Vec<Variable> = changed.map(|variable| Variable { round: number, ..variable }).collect();
        let now = Timestamp::now();
        let round = Round {
            number,
            parents: Some(at).filter(|at| *at > 0).into_iter().collect(),
            goal: goal_of_way_back(at),
            prefix: String::new(),
            hole: String::new(),
            suffix: String::new(),
            output: String::new(),
            written: written.iter().map(|variable| variable.name.clone()).collect(),
            removed: removed.clone(),
            not_kept: rounds
                .into_iter()
                .find(|round| round.number == at)
                .map(|round| round.not_kept)
                .unwrap_or_default(),
            statements_done: 0,
            outcome: Some(Outcome::Finished { value: None }),
            started_at: now,
            ended_at: Some(now),
            usage: RoundUsage::default(),
            seed: String::new(),
            trace: String::new(),
        };
        let session = SessionRecord {
            status: SessionStatus::Idle,
            updated_at: now.max(self.record.updated_at),
            rounds: number,
            segments: segments_until(&self.segments, at) as u64,
            turn: None,
            ..self.record.clone()
        };
        let rewind = Rewind { before: self.record.clone(), session, round, written, removed };
        self.store.rewind_session(&rewind).await?;
        crash::point("session rewound");
        let Rewind { session, round, written, removed, .. } = rewind;
        self.segments.truncate(usize::try_from(session.segments).unwrap_or(usize::MAX));
        self.variables.retain(|name, _| !removed.contains(name));
        self.variables.extend(written.into_iter().map(|variable| (variable.name.clone(), variable)));
        self.open = None;
        self.not_kept.clone_from(&round.not_kept);
        self.stored(session, 0);
        Ok(round)
    }

    /// Whether what that round left is known and still there, 0 being the beginning.
    ///
    /// # Errors
    /// As of [`fork`](Self::fork).
    pub async fn check_round(&self, at: u64) -> Result<(), BranchError> {
        self.settled(&self.rounds(0).await?, at)
    }

    fn settled(&self, rounds: &[Round], at: u64) -> Result<(), BranchError> {
        if at == 0 {
            return Ok(());
        }
        let found = rounds.iter().find(|round| round.number == at);
        let round = found.ok_or(BranchError::NoRound { round: at, last: self.record.rounds })?;
        if is_open(round.outcome.as_ref()) {
            return Err(BranchError::Open(at));
        }
        undone_by(rounds, at).map_or(Ok(()), |by| Err(BranchError::Undone { round: at, by }))
    }
}

impl BranchError {
    /// What the user can do, if there is something.
    pub fn hint(&self, id: &str) -> Option<String> {
        match self {
            BranchError::NoRound { .. } => Some(format!("`fimble sessions show {id}` lists the rounds")),
            BranchError::Open(_) => Some(format!("`fimble sessions resume {id}` goes on with it")),
            BranchError::Undone { .. } => {
                let hint =
                    "name an earlier round, or one after it; `fimble sessions vars --at` still shows its variables";
                Some(hint.to_owned())
            }
            BranchError::Store(error) => error.hint().map(str::to_owned),
        }
    }
}
