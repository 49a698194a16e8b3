//! The threads that own the connections, so that no file access ever blocks the async runtime. They do not know what
//! the work is about.
//!
//! All writes of a process go through one thread. Those that wait at the same time become one transaction, each behind
//! its own savepoint: concurrent calls of a round share one `fsync`, and one that fails leaves the others alone.

use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::rows::failed;
use super::schema::check_version;
use crate::store::StoreError;

/// The most writes that become one transaction.
const GROUP: usize = 64;

/// When a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When the operating system has it: lost if the machine dies before the next durable write, never if only the
    /// process does.
    Process,
    /// When the disk has it, and all that was written before.
    Machine,
}

/// A handle to one thread and its connection; both end when the last handle is dropped and the work is done.
#[derive(Clone)]
pub struct Thread {
    jobs: Sender<Job>,
}

enum Job {
    Read(Box<dyn Work>),
    Write(Durability, Box<dyn Work>),
}

/// Something to do on a connection, and someone who waits for its answer.
trait Work: Send {
    /// Does it; false if it failed and must leave nothing.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Gives the answer, or the error that came after it.
    fn answer(self: Box<Self>, overruled: Option<StoreError>);
}

struct Task<T, F> {
    work: Option<F>,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl Thread {
    /// Starts a thread that owns `connection`.
    ///
    /// # Errors
    /// `Failed` if the system has no thread for it.
    pub fn start(name: &str, connection: Connection) -> Result<Self, StoreError> {
        let (sender, jobs) = channel();
        std::thread::Builder::new()
            .name(name.into())
            .spawn(move || serve(&connection, &jobs))
            .map_err(|error| StoreError::Failed(format!("no thread for the database: {error}")))?;
        Ok(Self { jobs: sender })
    }

    /// Runs `work` after the writes that wait.
    pub async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        self.send(Job::Read, work).await
    }

    /// Runs `work` in a transaction. Its writes are all there if this returns `Ok`, and none of them if it returns
    /// `Err`. Dropping the future does not stop it.
    pub async fn write<T, F>(&self, durability: Durability, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        self.send(|task| Job::Write(durability, task), work).await
    }

    async fn send<T, F>(&self, job: impl FnOnce(Box<dyn Work>) -> Job, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let ended = || StoreError::Failed("the database thread has ended".into());
        self.jobs.send(job(Box::new(Task { work: Some(work), result: None, reply }))).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

impl<T, F> Work for Task<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        self.result = self.work.take().map(|work| work(connection));
        matches!(self.result, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, overruled: Option<StoreError>) {
        let answer = match (self.result, overruled) {
            // Its own error says more than what happened to the transaction around it.
            (Some(Err(error)), _) | (_, Some(error)) => Err(error),
            (Some(Ok(value)), None) => Ok(value),
            (None, None) => Err(StoreError::Failed("the write was not tried".into())),
        };
        // Who no longer waits needs no answer.
        let _ = self.reply.send(answer);
    }
}

fn serve(connection: &Connection, jobs: &Receiver<Job>) {
    let mut level = Durability::Machine;
    while let Ok(job) = jobs.recv() {
        let (mut reads, mut writes, mut durability) = (Vec::new(), Vec::new(), Durability::Process);
        let waiting = jobs.try_iter().take(GROUP - 1);
        for job in std::iter::once(job).chain(waiting) {
            match job {
                Job::Read(work) => reads.push(work),
                Job::Write(wanted, work) => {
                    if wanted == Durability::Machine {
                        durability = wanted;
                    }
                    writes.push(work);
                }
            }
        }
        if !writes.is_empty() {
            write_together(connection, &mut level, durability, writes);
        }
        for mut work in reads {
            work.run(connection);
            work.answer(None);
        }
    }
}

fn write_together(connection: &Connection, level: &mut Durability, wanted: Durability, mut writes: Vec<Box<dyn Work>>) {
    let outcome = transact(connection, level, wanted, &mut writes);
    if outcome.is_err() && !connection.is_autocommit() {
        // A failed rollback leaves a transaction that the next `BEGIN` reports; there is nobody to tell here.
        let _ = connection.execute_batch("ROLLBACK");
    }
    for work in writes {
        work.answer(outcome.as_ref().err().map(again));
    }
}

fn transact(
    connection: &Connection,
    level: &mut Durability,
    wanted: Durability,
    writes: &mut [Box<dyn Work>],
) -> Result<(), StoreError> {
    let execute = |statement: &str| -> Result<(), StoreError> {
        connection.prepare_cached(statement).and_then(|mut statement| statement.execute(())).map_err(failed("page"))?;
        Ok(())
    };
    if *level != wanted {
        let word = if wanted == Durability::Machine { "FULL" } else { "NORMAL" };
        connection.pragma_update(None, "synchronous", word).map_err(failed("page"))?;
        *level = wanted;
    }
    execute("BEGIN IMMEDIATE")?;
    check_version(connection)?;
    for work in writes {
        execute("SAVEPOINT work")?;
        if !work.run(connection) {
            // A full disk or a damaged file may have ended the whole transaction already.
            if connection.is_autocommit() {
                return Err(StoreError::Failed("a write beside this one ended the transaction".into()));
            }
            execute("ROLLBACK TO work")?;
        }
        execute("RELEASE work")?;
    }
    execute("COMMIT")
}

/// The same error for the next one who waits.
fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::TooNew { found, supported } => StoreError::TooNew { found: *found, supported: *supported },
        StoreError::Corrupt { what, message } => StoreError::Corrupt { what, message: message.clone() },
        StoreError::Failed(message) => StoreError::Failed(message.clone()),
        error => StoreError::Failed(error.to_string()),
    }
}
