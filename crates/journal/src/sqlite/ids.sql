-- The last batch that was appended: one that is sent again, because its answer was lost, is stored once.
ALTER TABLE logs ADD COLUMN batch BLOB;

-- The caller's name of a command; those of earlier versions have none.
ALTER TABLE commands ADD COLUMN id BLOB;
CREATE UNIQUE INDEX commands_by_id ON commands (id);

-- Commands that are done, so that one that is sent again is not done again, with their replies. Kept for a day.
CREATE TABLE done (
    id      BLOB PRIMARY KEY,
    session INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    reply   BLOB,
    sum     INTEGER NOT NULL
) STRICT;
CREATE INDEX done_by_time ON done (at);
CREATE INDEX done_by_session ON done (session);
