//! A thread that writes to the terminal or the pipe, so that a slow reader costs the program under way no time.
//!
//! The queue has no limit of its own: what a round may print, reply and call is limited, and its events are kept for the
//! store as well. It does not know what is written.

use std::io::stdin;
use std::sync::mpsc::{Receiver, Sender, channel};

use nix::sys::termios::{FlushArg, tcflush};
use tokio::sync::oneshot;

use super::output::{abandon, write_note, write_out};

/// What is to be written, as it is.
#[derive(Debug)]
pub(super) enum Piece {
    /// To standard output.
    Out(String),
    /// To standard error.
    Note(String),
    /// To standard error, unless nobody waits for the answer any more.
    Question {
        /// The question with its prompt.
        text: String,
        /// True if keys pressed before it is shown are no answer to it.
        forget_typed: bool,
        /// Told when it is shown.
        shown: oneshot::Sender<()>,
    },
}

/// The writing thread and its queue.
#[derive(Debug)]
pub(super) struct Writer {
    pieces: Sender<Piece>,
    done: oneshot::Receiver<()>,
}

impl Writer {
    /// Starts the thread; `None` if there can be none.
    pub(super) fn start() -> Option<Self> {
        let (pieces, queue) = channel();
        let (tell, done) = oneshot::channel();
        let work = move || {
            write_all(queue);
            let _ = tell.send(());
        };
        std::thread::Builder::new().name("writer".to_owned()).spawn(work).ok()?;
        Some(Self { pieces, done })
    }

    /// Writes `piece` after all that was given before. Never waits.
    pub(super) fn write(&self, piece: Piece) {
        // The thread ends after this sender is gone.
        let _ = self.pieces.send(piece);
    }

    /// Waits until all is written. Ctrl-C gives up on a reader that does not read.
    pub(super) async fn finish(self) {
        drop(self.pieces);
        tokio::select! {
            biased;
            _ = self.done => {}
            Ok(()) = tokio::signal::ctrl_c() => abandon(),
        }
    }
}

/// Writes one piece now.
pub(super) fn write_piece(piece: Piece) {
    match piece {
        Piece::Out(text) => write_out(&text),
        Piece::Note(text) => write_note(&text),
        Piece::Question { shown, .. } if shown.is_closed() => {}
        Piece::Question { text, forget_typed, shown } => {
            if forget_typed {
                // Fails only where no terminal is, and then nothing was typed.
                let _ = tcflush(stdin(), FlushArg::TCIFLUSH);
            }
            write_note(&text);
            let _ = shown.send(());
        }
    }
}

fn write_all(queue: Receiver<Piece>) {
    for piece in queue {
        write_piece(piece);
    }
}
