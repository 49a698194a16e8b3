//! A worker in a process of its own is killed in the middle of a turn; another one waits for work.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fimble::session::Session;
use fimble::store::Store;
use fimble::store::redis::{Address, Redis, Settings, TurnKind, TurnRequest, Turns};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{Outcome, worker};

/// The argument that makes this program the worker that dies.
pub const OWNER: &str = "--owner";

/// How often it is measured.
const TIMES: usize = 5;

/// The lease of both workers.
const LEASE: Duration = Duration::from_secs(2);

/// Works until it is killed.
pub async fn own(address: &Address) -> Outcome<()> {
    worker(address, "owner", LEASE, TIMES).await?.work(&CancellationToken::new()).await;
    Ok(())
}

/// Prints how long it took from each kill to the first event of the next owner.
pub async fn measure(url: &str) -> Outcome<()> {
    let address = Address::parse(url)?;
    let store: Arc<dyn Store> = Arc::new(Redis::open(&address, Settings::default()).await?);
    let turns = Turns::open(&address, &Settings::default()).await?;
    let mut waited = Vec::new();
    for number in 0..TIMES {
        let mut owner = Command::new(std::env::current_exe()?).args([url, OWNER]).stdout(Stdio::null()).spawn()?;
        let next = worker(&address, "next", LEASE, 1).await?;
        let session = Session::create(Arc::clone(&store), "bench", "bench", "").await?;
        let (id, session) = (format!("failover-{number}"), session.record().id.clone());
        let (tenant, user) = ("bench".to_owned(), "bench".to_owned());
        let kind = TurnKind::Message { text: "Look".to_owned() };
        turns.push(&TurnRequest { id, session: session.clone(), tenant, user, kind }).await?;
        while store.calls(&session, 1).await?.is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let cancel = CancellationToken::new();
        let working = tokio::spawn({
            let cancel = cancel.clone();
            async move { next.work(&cancel).await }
        });
        let dies = Timestamp::now();
        owner.kill()?;
        owner.wait()?;
        while turns.length().await? > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
        working.await?;
        let events = store.events(&session, 0, u32::MAX).await?;
        let taken = events.iter().find(|event| event.at > dies).ok_or("the turn was over before its worker died")?;
        waited.push(taken.at.duration_since(dies).as_secs_f64());
        store.delete_session(&session).await?;
    }
    waited.sort_by(f64::total_cmp);
    let (median, most) = (waited[TIMES / 2], waited[TIMES - 1]);
    let lease = LEASE.as_secs_f64();
    println!(
        "failover, {TIMES} times: {median:.2} s in the middle, {most:.2} s at most, from `kill -9` to the next owner's first event; \
         the lease and 1 s are {:.2} s",
        lease + 1.0
    );
    Ok(())
}
