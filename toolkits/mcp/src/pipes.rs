//! The pipes of a server as messages: one JSON text a line. It does not know what a message means.

use std::future::Future;
use std::io;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use crate::wire::{Line, RawAnswers};

/// A server's standard input and output. Reading and writing have tasks of their own: a wait that is given up never
/// leaves half a message behind.
pub(crate) struct Pipes {
    outgoing: Option<mpsc::Sender<Vec<u8>>>,
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
    raw: RawAnswers,
}

impl Pipes {
    /// Speaks over a process's pipes until it closes them or is `gone`: what it started may hold them for longer. A line
    /// of more than `message_bytes` is passed over.
    pub(crate) fn new(
        stdin: ChildStdin,
        stdout: ChildStdout,
        gone: impl Future<Output = ()> + Send + 'static,
        message_bytes: usize,
    ) -> Self {
        let (outgoing, lines) = mpsc::channel(QUEUED_MESSAGES);
        let (messages, incoming) = mpsc::channel(QUEUED_MESSAGES);
        let raw = RawAnswers::default();
        tokio::spawn(write_lines(stdin, lines));
        let reading = read_lines(stdout, message_bytes, raw.clone(), messages);
        tokio::spawn(async move {
            tokio::select! {
                () = reading => {}
                () = gone => {}
            }
        });
        Self { outgoing: Some(outgoing), incoming, raw }
    }
}

impl Transport<RoleClient> for Pipes {
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.raw.note(&message);
        let outgoing = self.outgoing.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let closed = || io::Error::new(io::ErrorKind::BrokenPipe, "the server takes no more input");
            outgoing.ok_or_else(closed)?.send(line).await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.incoming.recv().await
    }

    /// The end of its input tells a server to end.
    async fn close(&mut self) -> io::Result<()> {
        self.outgoing = None;
        Ok(())
    }
}

/// Messages that wait in each direction before the sender waits too.
const QUEUED_MESSAGES: usize = 64;

async fn write_lines(mut stdin: ChildStdin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// Reads until the server closes its output or nobody listens. Lines that are no message are noise, such as a banner.
async fn read_lines(stdout: ChildStdout, most: usize, raw: RawAnswers, messages: mpsc::Sender<ServerJsonRpcMessage>) {
    let mut reader = BufReader::with_capacity(64 * 1024, stdout);
    let mut line = Line::default();
    loop {
        let Ok(available @ [_, ..]) = reader.fill_buf().await else { return };
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(available.len());
        line.extend(available.get(..taken).unwrap_or_default(), most);
        reader.consume(end.map_or(taken, |end| end + 1));
        if end.is_none() {
            continue;
        }
        let message = line.message(most, &raw);
        line = Line::default();
        if let Some(message) = message
            && messages.send(message).await.is_err()
        {
            return;
        }
    }
}
