//! The scripts that run inside Redis, each as one: nothing comes between its reads and its writes. Kept as files of Lua.

use std::sync::LazyLock;

/// A script and its SHA-1, by which Redis knows it.
pub struct Script {
    /// The text.
    pub code: String,
    /// SHA-1 of the text in hexadecimal.
    pub hash: String,
}

impl Script {
    fn new(parts: &[&str]) -> Self {
        let code = parts.concat();
        let hash = ::redis::Script::new(&code).get_hash().to_owned();
        Self { code, hash }
    }
}

const READ: &str = include_str!("scripts/read.lua");
const FAMILY: &str = include_str!("scripts/family.lua");
const WRITE: &str = include_str!("scripts/write.lua");
const APPENDING: &str = include_str!("scripts/append.lua");
const TURNS: &str = include_str!("scripts/turns.lua");

macro_rules! scripts {
    ($($(#[doc = $text:literal])* $name:ident: $($part:expr),+;)*) => {
        $($(#[doc = $text])* pub static $name: LazyLock<Script> = LazyLock::new(|| Script::new(&[$($part),+]));)*
    };
}

scripts! {
    /// Opens a session.
    CREATE_SESSION: READ, FAMILY, WRITE, include_str!("scripts/create.lua");
    /// Opens a session that is as another one was.
    FORK_SESSION: READ, FAMILY, WRITE, include_str!("scripts/fork.lua");
    /// Takes a session back to an earlier round.
    REWIND_SESSION: READ, FAMILY, WRITE, include_str!("scripts/rewind.lua");
    /// Updates a session's row and appends to it.
    APPEND: READ, FAMILY, WRITE, APPENDING, include_str!("scripts/append_only.lua");
    /// Writes the end of a round.
    COMMIT_ROUND: READ, FAMILY, WRITE, APPENDING, include_str!("scripts/commit.lua");
    /// Stores a round that is about to run.
    OPEN_ROUND: READ, FAMILY, WRITE, include_str!("scripts/open_round.lua");
    /// Journals a call's request.
    REQUEST_CALL: READ, FAMILY, WRITE, include_str!("scripts/request_call.lua");
    /// Journals a call's end.
    FINISH_CALL: READ, FAMILY, WRITE, include_str!("scripts/finish_call.lua");
    /// Makes somebody the owner of a session for a while.
    TAKE_LEASE: READ, include_str!("scripts/take_lease.lua");
    /// Ends that.
    RELEASE_LEASE: READ, include_str!("scripts/release_lease.lua");
    /// Counts a session among those of its user that are at work.
    TAKE_PLACE: include_str!("scripts/take_place.lua");
    /// Adds a turn to the stream.
    ADD_TURN: TURNS, include_str!("scripts/add_turn.lua");
    /// Moves turns whose time has come to the stream, and takes one whose worker is not heard of.
    TAKE_TURN: TURNS, include_str!("scripts/take_turn.lua");
    /// Whether it is a turn's time.
    BEGIN_TURN: TURNS, include_str!("scripts/begin_turn.lua");
    /// Takes a turn off the stream, and takes the next one of its session that was taken before.
    END_TURN: TURNS, include_str!("scripts/end_turn.lua");
    /// Removes a session.
    DELETE_SESSION: READ, FAMILY, include_str!("scripts/delete_session.lua");
    /// The session's row.
    SESSION: READ, include_str!("scripts/session.lua");
    /// A page of segments.
    SEGMENTS: READ, include_str!("scripts/segments.lua");
    /// A page of events.
    EVENTS: READ, include_str!("scripts/events.lua");
    /// A page of rounds.
    ROUNDS: READ, include_str!("scripts/rounds.lua");
    /// A round's calls.
    CALLS: READ, include_str!("scripts/calls.lua");
    /// The variables there are now.
    VARIABLES: READ, include_str!("scripts/variables.lua");
    /// The variables there were after a round.
    VARIABLES_AT: READ, include_str!("scripts/variables_at.lua");
    /// Some variables with their contents.
    CONTENTS: READ, include_str!("scripts/contents.lua");
    /// All versions of all names.
    VERSIONS: READ, include_str!("scripts/versions.lua");
    /// One content.
    CONTENT: READ, include_str!("scripts/content.lua");
    /// How much a session holds.
    COUNT: READ, include_str!("scripts/count.lua");
    /// Counts a family's contents, and removes those that nothing refers to.
    SWEEP: READ, include_str!("scripts/sweep.lua");
    /// Stores a whole session.
    PUT_SESSION: READ, FAMILY, WRITE, include_str!("scripts/put.lua");
}
