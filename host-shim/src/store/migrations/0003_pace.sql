-- Pace: what is owed to hosts and sources, and how late a run is.

-- When a run was due before it had to wait for others of its host.
ALTER TABLE instance ADD COLUMN due_at INTEGER NOT NULL DEFAULT 0;
UPDATE instance SET due_at = next_run_at;
-- When a whole document was last read: 304 for too long is asked about.
ALTER TABLE instance ADD COLUMN full_at INTEGER;
UPDATE instance SET full_at = last_success_at;

-- SHA-256 of parts and extensions: a damaged page is not served. NULL for versions from before.
ALTER TABLE version ADD COLUMN digest BLOB;

-- Hosts that turned a reader away, and until when they are left alone.
CREATE TABLE host_rest (
    host  TEXT PRIMARY KEY,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL
) STRICT;
