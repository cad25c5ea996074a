//! The embedded store: SQLite in WAL mode, one writer, several readers.
//!
//! Owns connections, migrations and the mapping of SQLite's errors. Every write is one immediate transaction with
//! `synchronous=FULL`: what was acknowledged survives a killed process and a power cut.

pub mod backup;
mod changes;
mod claims;
mod instances;
mod migrate;
mod pages;
mod reads;
mod rows;
mod search;
mod secrets;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::model::{
    Admission, ApiKey, ChangePage, ChangeQuery, Claim, Corpus, Deposit, Idempotency, Instance, NewInstance, PageCommit,
    PageOutcome, Record, RecordQuery, Run, RunEnd, Sealed, StoredSecret, Version,
};
use super::{Created, Result, Store, StoreError};

/// Connections that read beside the writer.
const READERS: usize = 4;

/// How long a connection waits for another process, such as a backup.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Name of the file in the data folder.
pub const FILE: &str = "corpus.sqlite3";

/// SQLite in a file.
#[derive(Debug)]
pub struct Sqlite {
    writer: Mutex<Connection>,
    readers: Vec<Mutex<Connection>>,
    next_reader: std::sync::atomic::AtomicUsize,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match &error {
            rusqlite::Error::QueryReturnedNoRows => Self::NotFound("what was asked for"),
            rusqlite::Error::SqliteFailure(failure, Some(text)) if failure.code == ErrorCode::ConstraintViolation => {
                if text.contains("instance.source_namespace") {
                    Self::NamespaceInUse
                } else if text.contains(".name") {
                    Self::NameInUse
                } else {
                    Self::Engine(text.clone())
                }
            }
            rusqlite::Error::SqliteFailure(failure, _)
                if matches!(failure.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) =>
            {
                Self::Damaged(error.to_string())
            }
            // Columns have one type each, so a value of another one was not written by this program.
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..) => Self::Damaged(error.to_string()),
            _ => Self::Engine(error.to_string()),
        }
    }
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

impl Sqlite {
    /// Opens the store in a folder, making or migrating it.
    ///
    /// # Errors
    /// Where the file cannot be opened or was written by a newer program.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let mut writer = open(&path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        writer.pragma_update(None, "journal_mode", "WAL")?;
        writer.pragma_update(None, "synchronous", "FULL")?;
        migrate::run(&mut writer)?;
        let readers = (0..READERS)
            .map(|_| open(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).map(Mutex::new))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self { writer: Mutex::new(writer), readers, next_reader: 0.into() })
    }

    /// A connection to read with. A panic while one was held left no transaction behind: dropping one rolls it back.
    fn reader(&self) -> MutexGuard<'_, Connection> {
        let turn = self.next_reader.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let free = self.readers.iter().find_map(|r| r.try_lock().ok());
        free.unwrap_or_else(|| {
            let chosen = self.readers.get(turn % READERS.max(1)).unwrap_or(&self.writer);
            chosen.lock().unwrap_or_else(PoisonError::into_inner)
        })
    }

    /// Runs a write as one immediate transaction.
    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut connection = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = work(&transaction)?;
        transaction.commit()?;
        Ok(value)
    }
}

impl Store for Sqlite {
    fn create_corpus(&self, corpus: Corpus, once: &Idempotency) -> Result<Created<Corpus>> {
        self.write(|t| instances::create_corpus(t, corpus, once))
    }

    fn corpora(&self, after: Option<&str>, limit: u32) -> Result<Vec<Corpus>> {
        reads::corpora(&self.reader(), after, limit)
    }

    fn corpus(&self, corpus_id: &str) -> Result<Corpus> {
        reads::corpus(&self.reader(), corpus_id)
    }

    fn create_instance(&self, new: NewInstance, once: &Idempotency, now: i64) -> Result<Created<Instance>> {
        self.write(|t| instances::create(t, &new, once, now))
    }

    fn instance(&self, connector_id: &str) -> Result<Instance> {
        rows::instance(&self.reader(), connector_id)
    }

    fn instances(&self, corpus_ids: Option<&[String]>, after: Option<&str>, limit: u32) -> Result<Vec<Instance>> {
        reads::instances(&self.reader(), corpus_ids, after, limit)
    }

    fn create_instances(&self, new: Vec<NewInstance>, now: i64) -> Result<Vec<Result<Instance>>> {
        self.write(|t| new.iter().map(|n| instances::create_one_of_many(t, n, now)).collect())
    }

    fn configs(&self, corpus_id: &str) -> Result<Vec<serde_json::Value>> {
        reads::configs(&self.reader(), corpus_id)
    }

    fn set_paused(&self, connector_id: &str, paused: bool, once: &Idempotency, now: i64) -> Result<Instance> {
        self.write(|t| instances::set_paused(t, connector_id, paused, once, now))
    }

    fn set_interval(&self, connector_id: &str, interval_seconds: u32, now: i64) -> Result<Instance> {
        self.write(|t| instances::set_interval(t, connector_id, interval_seconds, now))
    }

    fn deposit(&self, connector_id: &str, deposit: &Deposit, once: &Idempotency, now: i64) -> Result<Instance> {
        self.write(|t| secrets::deposit(t, connector_id, deposit, once, now))
    }

    fn secret(&self, connector_id: &str) -> Result<Option<StoredSecret>> {
        secrets::secret(&self.reader(), connector_id)
    }

    fn secrets_not_under(&self, key_id: &str, after: i64, limit: u32) -> Result<Vec<StoredSecret>> {
        secrets::not_under(&self.reader(), key_id, after, limit)
    }

    fn reseal(&self, old: &StoredSecret, new: &Sealed) -> Result<bool> {
        self.write(|t| secrets::reseal(t, old, new))
    }

    fn disable(&self, connector_id: &str, now: i64) -> Result<Instance> {
        self.write(|t| instances::disable(t, connector_id, now))
    }

    fn pull_in(&self, connector_id: &str, at: i64, because: &str) -> Result<i64> {
        self.write(|t| instances::pull_in(t, connector_id, at, because))
    }

    fn claim_due(
        &self,
        now: i64,
        lease_until: i64,
        limit: u32,
        admit: &mut dyn FnMut(&Instance) -> Admission,
    ) -> Result<Vec<Claim>> {
        self.write(|t| claims::claim_due(t, now, lease_until, limit, admit))
    }

    fn claim(&self, connector_id: &str, now: i64, lease_until: i64) -> Result<Option<Claim>> {
        self.write(|t| claims::claim(t, connector_id, now, lease_until))
    }

    fn next_due(&self, now: i64) -> Result<Option<i64>> {
        reads::next_due(&self.reader(), now)
    }

    fn commit_page(&self, claim: &Claim, page: &PageCommit) -> Result<PageOutcome> {
        self.write(|t| pages::commit(t, claim, page))
    }

    fn end_run(&self, claim: &Claim, end: &RunEnd) -> Result<()> {
        self.write(|t| pages::end(t, claim, end))
    }

    fn recover(&self, now: i64) -> Result<u32> {
        self.write(|t| claims::recover(t, now))
    }

    fn give_back(&self, claim: &Claim, now: i64, at: i64) -> Result<()> {
        self.write(|t| claims::give_back(t, claim, now, at))
    }

    fn settle(&self, now: i64) -> Result<u32> {
        self.write(|t| claims::settle(t, now))
    }

    fn rests(&self, now: i64) -> Result<Vec<(String, i64)>> {
        claims::rests(&self.reader(), now)
    }

    fn tell_health(&self, connector_id: &str, health: &str, now: i64) -> Result<bool> {
        self.write(|t| instances::tell_health(t, connector_id, health, now))
    }

    fn runs(&self, connector_id: &str, before: Option<&str>, limit: u32) -> Result<Vec<Run>> {
        reads::runs(&self.reader(), connector_id, before, limit)
    }

    fn records(&self, query: &RecordQuery) -> Result<Vec<Record>> {
        reads::records(&self.reader(), query)
    }

    fn record(&self, record_id: &str) -> Result<Record> {
        reads::record(&self.reader(), record_id)
    }

    fn versions(&self, record_id: &str, after: u32, limit: u32) -> Result<Vec<Version>> {
        reads::versions(&self.reader(), record_id, after, limit)
    }

    fn version(&self, record_id: &str, version_id: &str) -> Result<Version> {
        reads::version(&self.reader(), record_id, version_id)
    }

    fn counts(&self, connector_id: &str) -> Result<(u64, Option<u64>)> {
        reads::counts(&self.reader(), connector_id)
    }

    fn changes(&self, query: &ChangeQuery) -> Result<ChangePage> {
        changes::read(&self.reader(), query)
    }

    fn prune_changes(&self, before: i64, limit: u32) -> Result<u32> {
        self.write(|t| changes::prune(t, before, limit))
    }

    fn used(&self, once: &Idempotency) -> Result<Option<String>> {
        instances::used(&self.reader(), once)
    }

    fn remember(&self, once: &Idempotency, resource_id: &str, now: i64) -> Result<()> {
        self.write(|t| instances::remember(t, once, resource_id, now))
    }

    fn api_keys(&self) -> Result<Vec<ApiKey>> {
        secrets::keys(&self.reader())
    }

    fn add_api_key(&self, key: &ApiKey) -> Result<()> {
        self.write(|t| secrets::add_key(t, key))
    }

    fn revoke_api_key(&self, key_id: &str, now: i64) -> Result<ApiKey> {
        self.write(|t| secrets::revoke_key(t, key_id, now))
    }
}
