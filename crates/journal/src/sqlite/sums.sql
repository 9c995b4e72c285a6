-- A checksum beside every row, over all that the program reads of it and over its place: see `checksum.rs`.
-- The rows that are there already get theirs in the same transaction.
ALTER TABLE sessions ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE logs ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE epochs ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE frames ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE asks ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE commands ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE natives ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
-- The name of this store, so that the witness beside it is not taken for that of another.
CREATE TABLE store (id INTEGER NOT NULL) STRICT;
INSERT INTO store VALUES (random());
