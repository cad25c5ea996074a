-- Corpora, connector instances, their runs, and what they collected. Times are milliseconds since 1970 in UTC.

CREATE TABLE corpus (
    corpus_id  TEXT PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE instance (
    seq                        INTEGER PRIMARY KEY,
    connector_id               TEXT NOT NULL UNIQUE,
    corpus_id                  TEXT NOT NULL REFERENCES corpus (corpus_id),
    source_namespace           TEXT NOT NULL,
    name                       TEXT NOT NULL,
    labels                     TEXT NOT NULL,
    kind                       TEXT NOT NULL,
    config                     TEXT NOT NULL,
    interval_seconds           INTEGER NOT NULL,
    silent_after_seconds       INTEGER NOT NULL,
    credential_warning_seconds INTEGER NOT NULL,
    created_at                 INTEGER NOT NULL,
    disabled_at                INTEGER,
    -- What the connector returned last, byte for byte.
    checkpoint                 TEXT,
    -- The body that was last processed whole, and by which component.
    body_digest                BLOB,
    body_plugin                BLOB,
    -- What the last document said of itself, JSON.
    diagnostics                TEXT,
    next_run_at                INTEGER NOT NULL,
    next_run_because           TEXT NOT NULL,
    -- A source that named a time is not asked before it, whoever wants to.
    not_before                 INTEGER NOT NULL DEFAULT 0,
    last_run_at                INTEGER,
    last_success_at            INTEGER,
    last_item_at               INTEGER,
    error_class                TEXT,
    error_code                 TEXT,
    error_message              TEXT,
    error_at                   INTEGER,
    -- Set by a failure of class access, cleared by a success.
    access_error               INTEGER NOT NULL DEFAULT 0,
    health                     TEXT NOT NULL,
    -- Requests of one day, and which day (days since 1970).
    reads_day                  INTEGER NOT NULL DEFAULT 0,
    reads_today                INTEGER NOT NULL DEFAULT 0,
    -- A run is claimed until lease_until; each claim has the next fence number.
    lease_until                INTEGER NOT NULL DEFAULT 0,
    fence                      INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE UNIQUE INDEX instance_namespace ON instance (corpus_id, source_namespace) WHERE disabled_at IS NULL;
CREATE UNIQUE INDEX instance_name ON instance (corpus_id, name) WHERE disabled_at IS NULL;
CREATE INDEX instance_due ON instance (next_run_at, seq) WHERE disabled_at IS NULL;

CREATE TABLE run (
    seq           INTEGER PRIMARY KEY,
    run_id        TEXT NOT NULL UNIQUE,
    instance      INTEGER NOT NULL REFERENCES instance (seq),
    fence         INTEGER NOT NULL,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    outcome       TEXT NOT NULL,
    class         TEXT,
    code          TEXT,
    message       TEXT,
    -- What only the operator sees: address, range, hop, certificate.
    detail        TEXT,
    http_status   INTEGER,
    final_url     TEXT,
    requests      INTEGER NOT NULL DEFAULT 0,
    wire_bytes    INTEGER NOT NULL DEFAULT 0,
    pages         INTEGER NOT NULL DEFAULT 0,
    items_new     INTEGER NOT NULL DEFAULT 0,
    items_changed INTEGER NOT NULL DEFAULT 0,
    plugin_digest TEXT
) STRICT;

CREATE INDEX run_of_instance ON run (instance, seq);
CREATE INDEX run_running ON run (instance) WHERE outcome = 'running';

CREATE TABLE record (
    seq             INTEGER PRIMARY KEY,
    record_id       TEXT NOT NULL UNIQUE,
    corpus_id       TEXT NOT NULL REFERENCES corpus (corpus_id),
    namespace       TEXT NOT NULL,
    record_key      TEXT NOT NULL,
    first_seen_at   INTEGER NOT NULL,
    -- Set once: the first published date, at most a day after first sight, else first sight.
    sort_time       INTEGER NOT NULL,
    sort_origin     TEXT NOT NULL,
    -- Of the current version.
    accepted_at     INTEGER NOT NULL,
    current_version INTEGER NOT NULL,
    revision        TEXT NOT NULL,
    ordinal         INTEGER NOT NULL,
    withdrawn       INTEGER NOT NULL DEFAULT 0,
    UNIQUE (corpus_id, namespace, record_key)
) STRICT;

CREATE INDEX record_of_corpus ON record (corpus_id, seq);
CREATE INDEX record_accepted ON record (corpus_id, accepted_at, seq);

CREATE TABLE version (
    seq            INTEGER PRIMARY KEY,
    version_id     TEXT NOT NULL UNIQUE,
    record         INTEGER NOT NULL REFERENCES record (seq),
    ordinal        INTEGER NOT NULL,
    revision       TEXT NOT NULL,
    parts          TEXT NOT NULL,
    extensions     TEXT NOT NULL,
    withdrawn      INTEGER NOT NULL DEFAULT 0,
    accepted_at    INTEGER NOT NULL,
    connector_id   TEXT NOT NULL,
    run_id         TEXT NOT NULL,
    plugin_id      TEXT NOT NULL,
    plugin_version TEXT NOT NULL,
    plugin_digest  TEXT NOT NULL,
    UNIQUE (record, ordinal)
) STRICT;

-- What the last document of an instance lists: JSON array of keys in document order, with positions.
CREATE TABLE document_window (
    instance INTEGER PRIMARY KEY REFERENCES instance (seq),
    run_id   TEXT NOT NULL,
    read_at  INTEGER NOT NULL,
    entries  TEXT NOT NULL
) STRICT;

-- Append-only. There is one writer, so numbers become visible in the order of commits.
CREATE TABLE change (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    at            INTEGER NOT NULL,
    type          TEXT NOT NULL,
    corpus_id     TEXT NOT NULL,
    resource_kind TEXT NOT NULL,
    resource_id   TEXT NOT NULL,
    data          TEXT NOT NULL
) STRICT;

-- What an idempotency key was used for: the hash of the canonical request, and what came of it.
CREATE TABLE idempotency (
    scope       TEXT NOT NULL,
    key         TEXT NOT NULL,
    request     BLOB NOT NULL,
    resource_id TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT;

CREATE TABLE api_key (
    key_id     TEXT PRIMARY KEY,
    hash       BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
