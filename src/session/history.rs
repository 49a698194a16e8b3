//! A session as it was: its variables after an earlier round, what changed between two, and what wrote one. It changes
//! nothing.

use std::collections::BTreeMap;

use super::Session;
use super::cut::way_back;
use crate::program::provenance;
use crate::record::{CallRecord, Round, Variable};
use crate::store::StoreError;

/// What became of a variable between two rounds.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It was not there before.
    Added(Variable),
    /// It is not there any more; as it was.
    Removed(Variable),
    /// Its content is another one: before and after.
    Changed(Box<(Variable, Variable)>),
}

/// Where a variable came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// The variable.
    pub variable: Variable,
    /// The round that wrote it.
    pub round: Round,
    /// The statement that did, as it stands in the round's hole; empty if the program did not say which.
    pub statement: String,
    /// The calls of the statement, and of those before it in the round that bound what it reads, in order.
    pub calls: Vec<CallRecord>,
}

impl Session {
    /// The variables as of the end of that round, by name; after the last one they are those of now. Round 0 has none.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn variables_at(&self, round: u64) -> Result<Vec<Variable>, StoreError> {
        self.store.variables_at(&self.record.id, round).await
    }

    /// What became of the variables from the end of one round to the end of another, by name. Rounds may go backwards.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn changes(&self, from: u64, to: u64) -> Result<Vec<Change>, StoreError> {
        let by_name = |variables: Vec<Variable>| -> BTreeMap<String, Variable> {
            variables.into_iter().map(|variable| (variable.name.clone(), variable)).collect()
        };
        let before = by_name(self.variables_at(from).await?);
        let mut after = by_name(self.variables_at(to).await?);
        let mut changes: Vec<(String, Change)> = Vec::new();
        for (name, old) in before {
            match after.remove(&name) {
                None => changes.push((name, Change::Removed(old))),
                Some(new) if new.hash != old.hash || new.kind != old.kind => {
                    changes.push((name, Change::Changed(Box::new((old, new)))));
                }
                Some(_) => {}
            }
        }
        changes.extend(after.into_iter().map(|(name, new)| (name, Change::Added(new))));
        changes.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(changes.into_iter().map(|(_, change)| change).collect())
    }

    /// What wrote the variable that was there at the end of that round; `None` if there was none of that name. A round that went
    /// back wrote nothing: the round that it went back to, or one before that, did.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn origin(&self, name: &str, at: u64) -> Result<Option<Origin>, StoreError> {
        let (mut variable, mut round) = (None, None);
        let mut until = Some(at);
        while let Some(at) = until {
            let Some(found) = self.variables_at(at).await?.into_iter().find(|variable| variable.name == name) else {
                return Ok(None);
            };
            let since = self.rounds(found.round.saturating_sub(1)).await?;
            let wrote = since.into_iter().find(|round| round.number == found.round);
            let wrote = wrote.ok_or_else(|| StoreError::Corrupt {
                what: "round",
                message: format!("round {} of `{name}` is not there", found.round),
            })?;
            // Each way leads to an earlier round.
            until = way_back(&wrote).filter(|target| *target < wrote.number);
            (variable, round) = (Some(found), Some(wrote));
        }
        let (Some(variable), Some(round)) = (variable, round) else { return Ok(None) };
        let Some(from) = provenance(&round.hole, variable.line) else {
            return Ok(Some(Origin { variable, round, statement: String::new(), calls: Vec::new() }));
        };
        let mut calls = self.calls(round.number).await?;
        calls.retain(|call| from.lines.iter().any(|lines| lines.contains(&call.site.line)));
        Ok(Some(Origin { variable, round, statement: from.statement, calls }))
    }
}
