-- The node that the session's agent runs on. A store on one machine has one.
ALTER TABLE sessions ADD COLUMN home TEXT NOT NULL DEFAULT 'local';
