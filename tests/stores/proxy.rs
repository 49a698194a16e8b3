//! A connection in between, which can be cut at any byte.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

/// Where connections are cut.
#[derive(Default)]
pub struct Cut {
    /// How many more bytes of requests pass; negative for all of them.
    requests: AtomicI64,
    /// Whether the next answer is swallowed.
    answer: AtomicBool,
    /// Whether connections are refused once one was cut.
    stays_down: AtomicBool,
    was_cut: AtomicBool,
}

impl Cut {
    /// Lets so many more bytes of requests pass, then ends the connection.
    pub fn after(&self, bytes: i64) {
        self.requests.store(bytes, Ordering::SeqCst);
    }

    /// Ends the connection when the next answer comes, which does not pass.
    pub fn before_answer(&self) {
        self.answer.store(true, Ordering::SeqCst);
    }

    /// Lets nobody in again after a cut.
    pub fn for_good(&self) {
        self.stays_down.store(true, Ordering::SeqCst);
    }

    pub fn happened(&self) -> bool {
        self.was_cut.load(Ordering::SeqCst)
    }

    fn is_down(&self) -> bool {
        self.happened() && self.stays_down.load(Ordering::SeqCst)
    }
}

/// Listens on `front` and passes everything on to `back`.
pub struct Proxy {
    pub cut: Arc<Cut>,
    front: PathBuf,
    task: JoinHandle<()>,
}

impl Proxy {
    pub fn start(front: PathBuf, back: PathBuf) -> Self {
        let listener = UnixListener::bind(&front).unwrap();
        let cut = Arc::new(Cut { requests: AtomicI64::new(-1), ..Cut::default() });
        let shared = Arc::clone(&cut);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                if !shared.is_down() {
                    let server = UnixStream::connect(&back).await.unwrap();
                    connections.spawn(pass(client, server, Arc::clone(&shared)));
                }
            }
        });
        Self { cut, front, task }
    }

    pub fn url(&self) -> String {
        format!("redis+unix://{}", self.front.display())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.front);
    }
}

/// Passes bytes both ways until one side ends or the connection is cut.
async fn pass(mut client: UnixStream, mut server: UnixStream, cut: Arc<Cut>) {
    let (mut request, mut answer) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut request) => {
                let Ok(read @ 1..) = read else { return };
                let left = cut.requests.load(Ordering::SeqCst);
                let passes = usize::try_from(left).map_or(read, |left| left.min(read));
                if server.write_all(&request[..passes]).await.is_err() {
                    return;
                }
                if passes < read || left == i64::try_from(read).unwrap() {
                    cut.requests.store(-1, Ordering::SeqCst);
                    cut.was_cut.store(true, Ordering::SeqCst);
                    return;
                }
                if left >= 0 {
                    cut.requests.fetch_sub(i64::try_from(read).unwrap(), Ordering::SeqCst);
                }
            }
            read = server.read(&mut answer) => {
                let Ok(read @ 1..) = read else { return };
                if cut.answer.swap(false, Ordering::SeqCst) {
                    cut.was_cut.store(true, Ordering::SeqCst);
                    return;
                }
                if client.write_all(&answer[..read]).await.is_err() {
                    return;
                }
            }
        }
    }
}
