-- Times are nanoseconds since 1970. A `record` or `content` is packed, see `store/packing.rs`.

CREATE TABLE sessions (
    key        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    tenant     TEXT NOT NULL,
    user       TEXT NOT NULL,
    title      TEXT NOT NULL,
    status     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    rounds     INTEGER NOT NULL,
    segments   INTEGER NOT NULL,
    events     INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_of_user ON sessions (tenant, user, updated_at);

CREATE TABLE segments (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    id      INTEGER NOT NULL,
    round   INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    content BLOB NOT NULL,
    tokens  INTEGER NOT NULL,
    pinned  INTEGER NOT NULL,
    PRIMARY KEY (session, id)
) STRICT;

CREATE TABLE events (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    record  BLOB NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT;

-- `ended` is 1 once the outcome is final.
CREATE TABLE rounds (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number  INTEGER NOT NULL,
    ended   INTEGER NOT NULL,
    record  BLOB NOT NULL,
    PRIMARY KEY (session, number)
) STRICT;

-- `position` is the order in which a round's calls were requested, from 1.
CREATE TABLE calls (
    session  INTEGER NOT NULL,
    round    INTEGER NOT NULL,
    position INTEGER NOT NULL,
    key      TEXT NOT NULL,
    record   BLOB NOT NULL,
    PRIMARY KEY (session, round, position),
    UNIQUE (session, key),
    FOREIGN KEY (session, round) REFERENCES rounds (session, number) ON DELETE CASCADE
) STRICT;

-- Equal contents are one row, whoever wrote them.
CREATE TABLE contents (
    hash    BLOB NOT NULL PRIMARY KEY,
    content BLOB NOT NULL
) STRICT;

-- What a round made of a name; never changed. No hash: the round removed it.
CREATE TABLE versions (
    session   INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    name      TEXT NOT NULL,
    round     INTEGER NOT NULL,
    hash      BLOB REFERENCES contents,
    kind      TEXT,
    type_name TEXT,
    preview   TEXT,
    size      INTEGER,
    line      INTEGER,
    uses      TEXT,
    PRIMARY KEY (session, name, round),
    FOREIGN KEY (session, round) REFERENCES rounds (session, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX versions_of_round ON versions (session, round);
CREATE INDEX versions_of_content ON versions (hash);

-- The last version of each name that is not removed: follows from `versions`, and spares reading a long history.
CREATE TABLE variables (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    name    TEXT NOT NULL,
    round   INTEGER NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;
