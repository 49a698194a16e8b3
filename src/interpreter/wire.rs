//! Frames over a round's socket, both ways at once, so that neither side can block the other. Lengths are checked before
//! anything is kept; what a frame says is checked elsewhere.

use std::io;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd;
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::overtime::processors;
use super::spin::Spin;

/// A frame that arrived.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub kind: u8,
    pub body: Vec<u8>,
}

/// What the other side did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    Frame(Frame),
    /// It closed the socket between two frames, or within one.
    Closed,
    /// It announced a frame of more bytes than allowed.
    Oversize(u64),
}

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// Bytes read while looking for what comes at once: a small call.
const PIECE: usize = 1024;

/// Bytes before the body: its length and its kind.
const HEAD: usize = 5;

/// One end of a round's socket.
#[derive(Debug)]
pub(super) struct Wire {
    stream: UnixStream,
    incoming: Vec<u8>,
    /// How much of `incoming` was taken.
    taken: usize,
    outgoing: Vec<u8>,
    /// How much of `outgoing` was written.
    written: usize,
    frame_bytes: usize,
    closed: bool,
    spin: Option<Spin>,
}

impl Wire {
    pub fn new(stream: UnixStream, frame_bytes: usize) -> Self {
        Self {
            stream,
            incoming: Vec::new(),
            taken: 0,
            outgoing: Vec::new(),
            written: 0,
            frame_bytes,
            closed: false,
            spin: None,
        }
    }

    /// Begins a round: allows frames of another size, and looks for what comes at once for at most `spin`.
    pub fn begin(&mut self, frame_bytes: usize, spin: Duration) {
        self.frame_bytes = frame_bytes;
        self.spin = (!spin.is_zero()).then(|| Spin::begin(spin, processors()));
    }

    /// Sends a frame as far as the other side takes it now; the rest goes with [`next`](Self::next).
    pub fn send(&mut self, kind: u8, body: &[u8]) {
        let Ok(length) = u32::try_from(body.len()) else { return };
        self.outgoing.extend(length.to_le_bytes());
        self.outgoing.push(kind);
        self.outgoing.extend(body);
        if self.write().is_err() {
            self.outgoing.clear();
            self.written = 0;
        }
        if let Some(spin) = &mut self.spin {
            spin.sent();
        }
    }

    /// Bytes that the other side has not taken yet.
    pub fn unsent(&self) -> usize {
        self.outgoing.len() - self.written
    }

    /// The next frame. Writes what is left to write meanwhile. Without `reads`, nothing is taken from the other side and
    /// the future does not end. Nothing is lost if it is dropped.
    pub async fn next(&mut self, reads: bool) -> io::Result<Incoming> {
        loop {
            if reads && let Some(incoming) = self.take() {
                return Ok(incoming);
            }
            if self.closed {
                return Ok(Incoming::Closed);
            }
            if reads && self.unsent() == 0 && self.look()? {
                continue;
            }
            let interest = match (reads, self.unsent() > 0) {
                (true, true) => Interest::READABLE | Interest::WRITABLE,
                (true, false) => Interest::READABLE,
                (false, true) => Interest::WRITABLE,
                (false, false) => return std::future::pending().await,
            };
            let ready = self.stream.ready(interest).await?;
            // A child that ended cannot take more; what it said before is still to be read.
            if ready.is_writable() && self.write().is_err() {
                self.outgoing.clear();
                self.written = 0;
            }
            if reads && ready.is_readable() {
                self.read()?;
            }
        }
    }

    /// True if [`next`](Self::next) would answer without waiting for the other side.
    pub fn has_frame(&self) -> bool {
        let Some((head, rest)) = self.incoming.get(self.taken..).and_then(|rest| rest.split_first_chunk::<HEAD>())
        else {
            return false;
        };
        let [a, b, c, d, _] = *head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        length > self.frame_bytes || length <= rest.len()
    }

    fn take(&mut self) -> Option<Incoming> {
        let rest = self.incoming.get(self.taken..)?;
        let head = rest.get(..HEAD)?;
        let length = usize::try_from(u32::from_le_bytes(head.get(..4)?.try_into().ok()?)).ok()?;
        if length > self.frame_bytes {
            return Some(Incoming::Oversize(length as u64));
        }
        let kind = *head.get(4)?;
        let body = rest.get(HEAD..HEAD + length)?.to_vec();
        self.taken += HEAD + length;
        if self.taken == self.incoming.len() {
            self.incoming.clear();
            self.taken = 0;
        }
        Some(Incoming::Frame(Frame { kind, body }))
    }

    /// Reads what comes within a moment, without sleeping. True if something did.
    fn look(&mut self) -> io::Result<bool> {
        let Some(until) = self.spin.as_mut().and_then(Spin::until) else { return Ok(false) };
        let mut piece = [0; PIECE];
        let came = loop {
            // The runtime does not know yet what the kernel does.
            match unistd::read(&self.stream, &mut piece) {
                Err(Errno::EAGAIN) if Instant::now() < until => std::hint::spin_loop(),
                Err(Errno::EAGAIN | Errno::EINTR) => break false,
                Ok(0) | Err(Errno::ECONNRESET) => {
                    self.closed = true;
                    break true;
                }
                Ok(count) => {
                    self.drop_taken();
                    self.incoming.extend(piece.iter().take(count));
                    break true;
                }
                Err(error) => return Err(error.into()),
            }
        };
        if let Some(spin) = &mut self.spin {
            spin.looked(came);
        }
        Ok(came)
    }

    fn drop_taken(&mut self) {
        if self.taken > 0 {
            self.incoming.drain(..self.taken);
            self.taken = 0;
        }
    }

    fn read(&mut self) -> io::Result<()> {
        self.drop_taken();
        self.incoming.reserve(CHUNK);
        if let Some(spin) = &mut self.spin {
            spin.came();
        }
        match self.stream.try_read_buf(&mut self.incoming) {
            Ok(0) => self.closed = true,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The other process died with bytes of ours unread.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.closed = true,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        while let Some(rest) = self.outgoing.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.stream.try_write(rest) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.outgoing.clear();
        self.written = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use futures_util::FutureExt;
    use tokio::io::AsyncWriteExt;

    use super::*;

    fn bytes(kind: u8, body: &[u8]) -> Vec<u8> {
        [&(body.len() as u32).to_le_bytes(), &[kind][..], body].concat()
    }

    fn frame(kind: u8, body: &[u8]) -> Incoming {
        Incoming::Frame(Frame { kind, body: body.to_vec() })
    }

    #[tokio::test]
    async fn frames_arrive_whole_however_they_are_cut() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut wire = Wire::new(ours, 1024);
        let sent = [bytes(17, b"one"), bytes(18, b""), bytes(19, &[b'x'; 1024])].concat();
        let writing = tokio::spawn(async move {
            for byte in sent {
                theirs.write_all(&[byte]).await.unwrap();
            }
        });
        for expected in [frame(17, b"one"), frame(18, b""), frame(19, &[b'x'; 1024]), Incoming::Closed] {
            assert_eq!(wire.next(true).await.unwrap(), expected);
        }
        writing.await.unwrap();
    }

    #[tokio::test]
    async fn a_wire_knows_whether_another_whole_frame_is_there() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut wire = Wire::new(ours, 1024);
        let half = &bytes(18, b"three")[..9];
        theirs.write_all(&[&bytes(17, b"one"), &bytes(17, b""), half].concat()).await.unwrap();
        let mut known = vec![wire.has_frame()];
        for expected in [frame(17, b"one"), frame(17, b"")] {
            assert_eq!(wire.next(true).await.unwrap(), expected);
            known.push(wire.has_frame());
        }
        assert_eq!(known, [false, true, false]);
    }

    #[tokio::test]
    async fn a_frame_that_is_cut_off_is_an_end_and_a_giant_one_is_told_by_its_head() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut wire = Wire::new(ours, 1024);
        theirs.write_all(&bytes(17, b"whole")[..7]).await.unwrap();
        drop(theirs);
        assert_eq!(wire.next(true).await.unwrap(), Incoming::Closed);

        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut wire = Wire::new(ours, 1024);
        theirs.write_all(&[0xff, 0xff, 0xff, 0xff, 17]).await.unwrap();
        assert_eq!(wire.next(true).await.unwrap(), Incoming::Oversize(u64::from(u32::MAX)));
    }

    #[tokio::test]
    async fn what_comes_as_soon_as_the_last_answer_is_waited_for_without_sleeping() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut wire = Wire::new(ours, 1024);
        wire.spin = Some(Spin::begin(Duration::from_secs(60), u32::MAX));
        let theirs = theirs.into_std().unwrap();
        theirs.set_nonblocking(false).unwrap();
        let echo = std::thread::spawn(move || {
            let (mut from, mut to) = (&theirs, &theirs);
            // Whole frames, and none of the last one's answer.
            for _ in 0..3 {
                let mut frame = [0; HEAD + 4];
                from.read_exact(&mut frame).unwrap();
                to.write_all(&frame).unwrap();
            }
            from.read_exact(&mut [0; HEAD + 4]).unwrap();
        });
        wire.send(17, b"slow");
        assert_eq!(wire.next(true).await.unwrap(), frame(17, b"slow"));
        for word in [b"soon", b"most"] {
            wire.send(18, word);
            assert_eq!(wire.next(true).now_or_never().unwrap().unwrap(), frame(18, word));
        }
        wire.send(19, b"last");
        assert_eq!(wire.next(true).now_or_never().unwrap().unwrap(), Incoming::Closed);
        echo.join().unwrap();
    }

    #[tokio::test]
    async fn nothing_is_looked_for_without_a_processor_for_each_side() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut wire = Wire::new(ours, 1024);
        wire.spin = Some(Spin::begin(Duration::from_secs(60), 1));
        for expected in [frame(17, b"one"), frame(17, b"two")] {
            wire.send(17, b"");
            assert!(wire.next(true).now_or_never().is_none());
            let Incoming::Frame(Frame { kind, body }) = &expected else { unreachable!() };
            theirs.write_all(&bytes(*kind, body)).await.unwrap();
            assert_eq!(wire.next(true).await.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn two_sides_that_both_write_much_do_not_wait_for_each_other() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut ours, mut theirs) = (Wire::new(ours, 1 << 24), Wire::new(theirs, 1 << 24));
        let body = vec![b'x'; 1 << 24];
        ours.send(17, &body);
        theirs.send(18, &body);
        assert!(ours.unsent() > 0 && theirs.unsent() > 0);
        let reading = tokio::spawn(async move { (theirs.next(true).await.unwrap(), theirs) });
        assert_eq!(ours.next(true).await.unwrap(), frame(18, &body));
        // This side has read all, and still has to write what is left.
        let read = tokio::select! {
            read = reading => read.unwrap().0,
            other = ours.next(true) => panic!("{other:?}"),
        };
        assert_eq!(read, frame(17, &body));
    }
}
