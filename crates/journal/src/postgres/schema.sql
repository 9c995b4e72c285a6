-- Version 1. Every name is a contract: tools read `linkspan.events` and `linkspan.sessions`.
CREATE SCHEMA IF NOT EXISTS linkspan;

CREATE TABLE linkspan.meta (version int NOT NULL, compatible int NOT NULL, cluster uuid NOT NULL);
INSERT INTO linkspan.meta VALUES (0, 1, gen_random_uuid());

-- One counter for all leases: a session that is removed and made again must not honour an old one.
CREATE SEQUENCE linkspan.epochs AS bigint CACHE 1;
-- The order of the list, which the clock does not decide.
CREATE SEQUENCE linkspan.activities AS bigint CACHE 1;

CREATE TABLE linkspan.nodes (
    name       text PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    machine    uuid NOT NULL,
    owner      text NOT NULL,
    version    text NOT NULL,
    protocol   int NOT NULL,
    engines    bytea NOT NULL,
    roots      bytea NOT NULL,
    joined_at  timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL,
    until      timestamptz NOT NULL,
    retired_at timestamptz
);

CREATE TABLE linkspan.sessions (
    key        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         text NOT NULL UNIQUE,
    made       uuid NOT NULL,
    home       text NOT NULL,
    engine     text NOT NULL,
    native     text,
    cwd        text,
    title      text,
    search     text NOT NULL,
    created_at bigint NOT NULL,
    active_at  bigint NOT NULL,
    activity   bigint NOT NULL DEFAULT nextval('linkspan.activities'),
    parent     text,
    parent_seq bigint,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX sessions_by_activity ON linkspan.sessions (activity);
CREATE INDEX sessions_by_change ON linkspan.sessions (changed_at);
CREATE INDEX sessions_by_home ON linkspan.sessions (home, activity);

-- One small row per session, changed by every append: room for updates within the page, no index but the key.
CREATE TABLE linkspan.logs (
    session  bigint PRIMARY KEY,
    home     text NOT NULL,
    head     bigint NOT NULL DEFAULT 0,
    bytes    bigint NOT NULL DEFAULT 0,
    commands bigint NOT NULL DEFAULT 0,
    epoch    bigint NOT NULL DEFAULT 0,
    owner    text,
    until    timestamptz,
    batch    uuid, -- the last append
    granted  uuid  -- the last acquire
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE TABLE linkspan.events (
    session bigint NOT NULL,
    seq     bigint NOT NULL,
    at      bigint NOT NULL,
    epoch   bigint NOT NULL,
    kind    text NOT NULL,
    cut     bigint NOT NULL,
    sum     bigint NOT NULL,
    line    bytea NOT NULL,
    PRIMARY KEY (session, seq)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05);

CREATE TABLE linkspan.frames (
    session bigint NOT NULL,
    seq     bigint NOT NULL,
    cut     bigint NOT NULL,
    sum     bigint NOT NULL,
    bytes   bytea NOT NULL,
    PRIMARY KEY (session, seq)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05);

CREATE TABLE linkspan.runs (
    session    bigint NOT NULL,
    home       text NOT NULL,
    run        text NOT NULL,
    first      bigint NOT NULL,
    started_at bigint NOT NULL,
    last       bigint,
    ended_at   bigint,
    outcome    text,
    heard      boolean NOT NULL, -- the agent has emitted an event
    activity   bigint NOT NULL,
    PRIMARY KEY (session, first),
    CONSTRAINT runs_once UNIQUE (run, session)
);
CREATE INDEX open_runs ON linkspan.runs (home, started_at, session) WHERE last IS NULL;
CREATE INDEX open_runs_by_session ON linkspan.runs (session) WHERE last IS NULL;

CREATE TABLE linkspan.asks (
    session  bigint NOT NULL,
    home     text NOT NULL,
    seq      bigint NOT NULL,
    ask      text NOT NULL,
    run      text,
    at       bigint NOT NULL,
    answered boolean NOT NULL DEFAULT false,
    decision text,
    PRIMARY KEY (session, seq)
);
CREATE UNIQUE INDEX waiting_asks ON linkspan.asks (session, ask) WHERE decision IS NULL;
CREATE INDEX waiting_by_home ON linkspan.asks (home, at, session, seq) WHERE decision IS NULL;

-- Done commands stay for a day: they are what makes a late retry harmless, and they carry the reply.
CREATE TABLE linkspan.commands (
    session bigint NOT NULL,
    number  bigint NOT NULL,
    id      uuid NOT NULL,
    home    text NOT NULL,
    at      bigint NOT NULL,
    word    text NOT NULL,
    ask     bigint,
    body    bytea NOT NULL,
    mac     bytea,
    done_at timestamptz,
    reply   bytea,
    PRIMARY KEY (session, number),
    CONSTRAINT commands_once UNIQUE (id)
);
CREATE INDEX pending_commands ON linkspan.commands (home, session, number) WHERE done_at IS NULL;
CREATE INDEX pending_by_session ON linkspan.commands (session, number) WHERE done_at IS NULL;
CREATE INDEX old_commands ON linkspan.commands (done_at) WHERE done_at IS NOT NULL;

-- Questions to a node, not to a session: files, directories, engines.
CREATE TABLE linkspan.calls (
    id       uuid PRIMARY KEY,
    node     text NOT NULL,
    asker    text NOT NULL,
    at       timestamptz NOT NULL DEFAULT now(),
    until    timestamptz NOT NULL,
    word     text NOT NULL,
    body     bytea NOT NULL,
    mac      bytea,
    taken_by text,
    done_at  timestamptz,
    status   text,
    reply    bytea
);
CREATE INDEX waiting_calls ON linkspan.calls (node, at) WHERE taken_by IS NULL;

CREATE TABLE linkspan.natives (
    native  text NOT NULL,
    session bigint NOT NULL,
    PRIMARY KEY (native, session)
);
CREATE INDEX natives_by_session ON linkspan.natives (session);

-- Removed sessions whose events are still being swept away.
CREATE TABLE linkspan.doomed (session bigint PRIMARY KEY);

CREATE TABLE linkspan.tokens (
    id         text PRIMARY KEY,
    role       text NOT NULL,
    hash       text NOT NULL,
    created_at bigint NOT NULL,
    mac        bytea
);

-- Projects, the provider that was chosen, and the like.
CREATE TABLE linkspan.notes (name text PRIMARY KEY, body bytea NOT NULL, version bigint NOT NULL);

CREATE TABLE linkspan.words (
    session bigint NOT NULL,
    seq     bigint NOT NULL,
    text    text NOT NULL,
    terms   tsvector GENERATED ALWAYS AS (to_tsvector('simple', left(text, 200000))) STORED,
    PRIMARY KEY (session, seq)
);
CREATE INDEX words_by_term ON linkspan.words USING gin (terms);

-- For people: lines are stored as bytes, because `text` cannot hold all of them.
CREATE VIEW linkspan.lines AS
SELECT session, seq, convert_from(line, 'UTF8') AS line FROM linkspan.events;
