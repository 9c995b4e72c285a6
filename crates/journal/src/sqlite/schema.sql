-- What people see of a session. `key` is never used again, so that events of a removed session that are
-- not swept away yet cannot come back under another name.
CREATE TABLE sessions (
    key        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    engine     TEXT NOT NULL,
    native     TEXT,
    cwd        TEXT,
    title      TEXT,
    search     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    active_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_activity ON sessions (active_at, id);

-- Where a session's log stands and who may write it: small, because every append changes it.
CREATE TABLE logs (
    session     INTEGER PRIMARY KEY,
    head        INTEGER NOT NULL DEFAULT 0,
    bytes       INTEGER NOT NULL DEFAULT 0,
    commands    INTEGER NOT NULL DEFAULT 0,
    epoch       INTEGER NOT NULL DEFAULT 0,
    owner       TEXT,
    lease_era   TEXT,
    lease_until INTEGER
) STRICT;

-- The last epoch of any lease. One counter for all: a session that is removed and made again under its old
-- name must not honour an old lease.
CREATE TABLE epochs (last INTEGER NOT NULL) STRICT;
INSERT INTO epochs VALUES (0);

-- `key` is the session's key and the event's number in one integer: one tree in reading order, no index.
CREATE TABLE events (
    key  INTEGER PRIMARY KEY,
    at   INTEGER NOT NULL,
    kind TEXT NOT NULL,
    cut  INTEGER NOT NULL,
    line TEXT NOT NULL
) STRICT;

CREATE TABLE frames (
    key   INTEGER PRIMARY KEY,
    cut   INTEGER NOT NULL,
    bytes BLOB NOT NULL
) STRICT;

CREATE TABLE runs (
    session    INTEGER NOT NULL,
    run        TEXT NOT NULL,
    first      INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    last       INTEGER,
    ended_at   INTEGER,
    outcome    TEXT,
    PRIMARY KEY (session, first),
    UNIQUE (run, session)
) STRICT;
CREATE INDEX open_runs ON runs (session) WHERE last IS NULL;

CREATE TABLE asks (
    session  INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    ask      TEXT NOT NULL,
    run      TEXT,
    at       INTEGER NOT NULL,
    answered INTEGER NOT NULL DEFAULT 0,
    decision TEXT,
    PRIMARY KEY (session, seq)
) STRICT;
CREATE UNIQUE INDEX waiting_asks ON asks (session, ask) WHERE decision IS NULL;

CREATE TABLE commands (
    session INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    word    TEXT NOT NULL,
    ask     INTEGER,
    body    BLOB NOT NULL,
    PRIMARY KEY (session, number)
) STRICT;

CREATE TABLE natives (
    native  TEXT NOT NULL,
    session INTEGER NOT NULL,
    PRIMARY KEY (native, session)
) STRICT;
CREATE INDEX natives_by_session ON natives (session);

-- Removed sessions whose events are still being swept away.
CREATE TABLE doomed (session INTEGER PRIMARY KEY) STRICT;
