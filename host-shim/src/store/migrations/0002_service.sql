-- Keys with scopes, credentials, pauses, what a source says of its pace, text search, and the end of old changes.

-- Scopes are joined by blanks; corpora are a JSON array, NULL for all. A key from before may do all it could.
ALTER TABLE api_key ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE api_key ADD COLUMN scopes TEXT NOT NULL DEFAULT 'connectors:admin content:read changes:read';
ALTER TABLE api_key ADD COLUMN corpora TEXT;
ALTER TABLE api_key ADD COLUMN revoked_at INTEGER;

-- The sealed secret and the key that sealed it; both are NULL where there is none.
ALTER TABLE instance ADD COLUMN credential BLOB;
ALTER TABLE instance ADD COLUMN credential_key TEXT;
ALTER TABLE instance ADD COLUMN credential_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instance ADD COLUMN credential_deposited_at INTEGER;
ALTER TABLE instance ADD COLUMN credential_expires_at INTEGER;
CREATE INDEX instance_credential ON instance (credential_key, seq) WHERE credential IS NOT NULL;

ALTER TABLE instance ADD COLUMN paused_at INTEGER;
DROP INDEX instance_due;
CREATE INDEX instance_due ON instance (next_run_at, seq) WHERE disabled_at IS NULL AND paused_at IS NULL;
CREATE INDEX instance_of_corpus ON instance (corpus_id, connector_id);

-- What the last document and its headers say of their pace, JSON.
ALTER TABLE instance ADD COLUMN hints TEXT;
-- What only the operator sees of the last failure: address, range, hop, certificate.
ALTER TABLE instance ADD COLUMN error_detail TEXT;
-- Failures in a row.
ALTER TABLE instance ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
-- Turned away since when, and by which host; a success clears it.
ALTER TABLE instance ADD COLUMN throttled_since INTEGER;
ALTER TABLE instance ADD COLUMN throttled_host TEXT;
-- Where a permanent redirect points to, since when, on how many days it was seen, and the last of these days.
ALTER TABLE instance ADD COLUMN moved_to TEXT;
ALTER TABLE instance ADD COLUMN moved_since INTEGER;
ALTER TABLE instance ADD COLUMN moved_days INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instance ADD COLUMN moved_day INTEGER NOT NULL DEFAULT 0;

-- Words of titles and bodies of current versions; the rowid is the record's.
CREATE VIRTUAL TABLE search USING fts5 (
    title, body, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

CREATE INDEX change_of_corpus ON change (corpus_id, seq);
CREATE INDEX change_at ON change (at);

-- The number of the newest change that was taken out.
CREATE TABLE change_floor (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL
) STRICT;
INSERT INTO change_floor (one, seq) VALUES (1, 0);
