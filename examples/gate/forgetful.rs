//! A store that keeps everything but the journal of calls, so that the gate can be measured without it.

use async_trait::async_trait;
use fimble::event::Event;
use fimble::record::{CallRecord, Round, SessionRecord, Variable, WrittenVariable};
use fimble::segment::Segment;
use fimble::store::sqlite::Sqlite;
use fimble::store::{Rewind, RoundCommit, Store, StoreError};

pub struct Forgetful(pub Sqlite);

type Stored<T> = Result<T, StoreError>;

#[async_trait]
impl Store for Forgetful {
    async fn request_call(&self, _session: &str, _round: u64, _call: &CallRecord) -> Stored<()> {
        Ok(())
    }

    async fn finish_call(&self, _session: &str, _round: u64, _call: &CallRecord) -> Stored<()> {
        Ok(())
    }

    async fn create_session(&self, session: &SessionRecord) -> Stored<()> {
        self.0.create_session(session).await
    }

    async fn session(&self, id: &str) -> Stored<Option<SessionRecord>> {
        self.0.session(id).await
    }

    async fn sessions(&self, tenant: &str, user: &str, limit: u32) -> Stored<Vec<SessionRecord>> {
        self.0.sessions(tenant, user, limit).await
    }

    async fn delete_session(&self, id: &str) -> Stored<()> {
        self.0.delete_session(id).await
    }

    async fn append(&self, session: &SessionRecord, segments: &[Segment], events: &[Event]) -> Stored<()> {
        self.0.append(session, segments, events).await
    }

    async fn segments(&self, session: &str, after: u64, limit: u32) -> Stored<Vec<Segment>> {
        self.0.segments(session, after, limit).await
    }

    async fn events(&self, session: &str, after: u64, limit: u32) -> Stored<Vec<Event>> {
        self.0.events(session, after, limit).await
    }

    async fn open_round(&self, session: &str, round: &Round) -> Stored<()> {
        self.0.open_round(session, round).await
    }

    async fn commit_round(&self, commit: &RoundCommit) -> Stored<()> {
        self.0.commit_round(commit).await
    }

    async fn rounds(&self, session: &str, after: u64) -> Stored<Vec<Round>> {
        self.0.rounds(session, after).await
    }

    async fn calls(&self, session: &str, round: u64) -> Stored<Vec<CallRecord>> {
        self.0.calls(session, round).await
    }

    async fn variables(&self, session: &str) -> Stored<Vec<Variable>> {
        self.0.variables(session).await
    }

    async fn variables_at(&self, session: &str, round: u64) -> Stored<Vec<Variable>> {
        self.0.variables_at(session, round).await
    }

    async fn fork_session(&self, source: &str, fork: &SessionRecord) -> Stored<()> {
        self.0.fork_session(source, fork).await
    }

    async fn rewind_session(&self, rewind: &Rewind) -> Stored<()> {
        self.0.rewind_session(rewind).await
    }

    async fn contents(&self, session: &str, names: &[String]) -> Stored<Vec<WrittenVariable>> {
        self.0.contents(session, names).await
    }
}
