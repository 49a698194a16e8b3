//! `fimble worker`: makes turns for all that share a store.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::{Failure, open, policy};
use crate::config::{Config, StorePlace};
use crate::store::redis::{Address, Settings, TurnKind, TurnRequest, Turns};
use crate::worker::Worker;

/// Make the turns that `fimble sessions send` asks for, together with all workers of the same Redis.
#[derive(Debug, Args)]
pub(super) struct WorkerCommand {
    /// The store, `redis://…`. Default: the configured one.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Turns at the same time.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    turns: u16,
    /// Seconds after which the turn of a worker that is not heard of goes to another one.
    #[arg(long, value_name = "S", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=3600))]
    lease: u64,
    #[command(flatten)]
    policy: policy::Choice,
}

impl WorkerCommand {
    pub(super) fn settings(&self, mut settings: Vec<String>) -> Vec<String> {
        settings.extend(self.store.as_ref().map(|store| format!("store={store}")));
        settings
    }

    pub(super) async fn execute(self, mut config: Config) -> Result<ExitCode, Failure> {
        self.policy.apply(&mut config);
        let (address, redis) = shared(&config)?;
        let store = open::store(&config).await?;
        let turns = Turns::open(&address, &redis).await?;
        let agent = Arc::new(open::agent(&config).await?);
        let _listener = open::listen(&agent.parts.gate);
        let cancel = CancellationToken::new();
        let stop = open::cancel_on_interrupt(&cancel);
        let name = open::process_name();
        note!("worker {name} · {} · {} turns at a time · Ctrl-C ends it", agent.model.name(), self.turns);
        let worker = Worker {
            name,
            agent,
            store,
            turns: Arc::new(turns),
            lease: Duration::from_secs(self.lease),
            at_once: self.turns.into(),
            session: config.session,
            view: config.toolkits.session,
        };
        worker.work(&cancel).await;
        stop.abort();
        Ok(ExitCode::SUCCESS)
    }
}

/// Asks the workers for a turn in that session, or in a new one; the session's id goes to standard output.
pub(super) async fn send(config: &Config, id: Option<&str>, text: String) -> Result<ExitCode, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage("the message is empty"));
    }
    let (address, redis) = shared(config)?;
    let store = open::store(config).await?;
    let session = open::session(config, store, id).await?;
    let record = session.record();
    let request = TurnRequest {
        id: uuid::Uuid::now_v7().to_string(),
        session: record.id.clone(),
        tenant: record.tenant.clone(),
        user: record.user.clone(),
        kind: TurnKind::Message { text },
    };
    Turns::open(&address, &redis).await?.push(&request).await?;
    out!("{}", record.id);
    Ok(ExitCode::SUCCESS)
}

fn shared(config: &Config) -> Result<(Address, Settings), Failure> {
    match config.store_place()? {
        StorePlace::Redis(address, settings) => Ok((address, settings)),
        StorePlace::File(_) => Err(Failure::usage("workers share a Redis, and the store is a file")
            .with_hint("name one: `--store redis://localhost:6379`, `store = …` or REDIS_URL")),
    }
}
