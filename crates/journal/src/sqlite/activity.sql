-- What a fork begins with.
ALTER TABLE sessions ADD COLUMN parent TEXT;
ALTER TABLE sessions ADD COLUMN parent_seq INTEGER;

-- The order of the list. It only ever counts up, where the clock may be set back.
ALTER TABLE sessions ADD COLUMN activity INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET activity = ordered.number
FROM (SELECT key, row_number() OVER (ORDER BY active_at, id) AS number FROM sessions) AS ordered
WHERE ordered.key = sessions.key;
CREATE TABLE activities (last INTEGER NOT NULL, sum INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO activities (last) SELECT count(*) FROM sessions;
DROP INDEX sessions_by_activity;
CREATE INDEX sessions_by_activity ON sessions (activity);

-- Whether the agent of a run has told something: those that were stored before were told by their agents.
ALTER TABLE runs ADD COLUMN heard INTEGER NOT NULL DEFAULT 1;
-- The session's place in that order when the run began.
ALTER TABLE runs ADD COLUMN activity INTEGER NOT NULL DEFAULT 0;
