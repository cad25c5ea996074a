//! The store: what outlives a process.
//!
//! Owns the trait, which assumes no SQLite: claims with lease and fence, one transaction for each page, changes in
//! commit order. `sqlite` is the embedded one. Decides nothing about health or schedules; it is told.

pub mod model;
pub mod sqlite;

use model::{
    Admission, ApiKey, ChangePage, ChangeQuery, Claim, Corpus, Deposit, Idempotency, Instance, NewInstance, PageCommit,
    PageOutcome, Record, RecordQuery, Run, RunEnd, Sealed, StoredSecret, Version,
};

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such thing.
    #[error("{0} does not exist")]
    NotFound(&'static str),
    /// An enabled instance owns the namespace.
    #[error("an enabled connector of this corpus already owns the source namespace; disable it first")]
    NamespaceInUse,
    /// An enabled instance or a corpus has the name.
    #[error("the name is already in use")]
    NameInUse,
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request")]
    IdempotencyConflict,
    /// Another claim took over, or the instance was disabled; what this one would write is void.
    #[error("the run lost its claim")]
    LostClaim,
    /// The file was written by a newer program.
    #[error("the store has schema {found}, this program knows {known}; use the newer program")]
    NewerSchema {
        /// Schema of the file.
        found: i64,
        /// Schema of the program.
        known: i64,
    },
    /// A page of the file is not what was written there.
    #[error("the store is damaged: {0}; stop the service and restore a backup")]
    Damaged(String),
    /// A file stands where one would be written.
    #[error("{0} exists already; it is not overwritten")]
    Taken(String),
    /// The engine of the store failed.
    #[error("the store failed: {0}")]
    Engine(String),
}

/// What was made, or what the same request made before.
#[derive(Debug, Clone, PartialEq)]
pub struct Created<T> {
    /// The thing.
    pub value: T,
    /// It was there already.
    pub replayed: bool,
}

/// Result of a call.
pub type Result<T> = std::result::Result<T, StoreError>;

/// What the host keeps. Calls block; whoever is asynchronous makes them on a thread for that.
pub trait Store: Send + Sync {
    /// Makes a corpus, or finds the one that the same request made.
    ///
    /// # Errors
    /// [`StoreError::NameInUse`], [`StoreError::IdempotencyConflict`].
    fn create_corpus(&self, corpus: Corpus, once: &Idempotency) -> Result<Created<Corpus>>;

    /// Corpora by identifier, behind `after`.
    ///
    /// # Errors
    /// Where the store fails.
    fn corpora(&self, after: Option<&str>, limit: u32) -> Result<Vec<Corpus>>;

    /// One corpus.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn corpus(&self, corpus_id: &str) -> Result<Corpus>;

    /// Makes an instance that is due at once.
    ///
    /// # Errors
    /// [`StoreError::NamespaceInUse`], [`StoreError::NameInUse`], [`StoreError::IdempotencyConflict`].
    fn create_instance(&self, new: NewInstance, once: &Idempotency, now: i64) -> Result<Created<Instance>>;

    /// One instance.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn instance(&self, connector_id: &str) -> Result<Instance>;

    /// Instances by identifier, of some corpora or of all, behind `after`.
    ///
    /// # Errors
    /// Where the store fails.
    fn instances(&self, corpus_ids: Option<&[String]>, after: Option<&str>, limit: u32) -> Result<Vec<Instance>>;

    /// Makes many instances in one transaction; each is made or has the reason why not.
    ///
    /// # Errors
    /// Where the store fails; then none is made.
    fn create_instances(&self, new: Vec<NewInstance>, now: i64) -> Result<Vec<Result<Instance>>>;

    /// Configs of the enabled instances of a corpus.
    ///
    /// # Errors
    /// Where the store fails.
    fn configs(&self, corpus_id: &str) -> Result<Vec<serde_json::Value>>;

    /// Pauses or resumes an instance; a request that was made before changes nothing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::IdempotencyConflict`].
    fn set_paused(&self, connector_id: &str, paused: bool, once: &Idempotency, now: i64) -> Result<Instance>;

    /// Sets the interval; a shorter one pulls the next run in, but never before what the source allows.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn set_interval(&self, connector_id: &str, interval_seconds: u32, now: i64) -> Result<Instance>;

    /// Keeps another credential; a request that was made before changes nothing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::IdempotencyConflict`].
    fn deposit(&self, connector_id: &str, deposit: &Deposit, once: &Idempotency, now: i64) -> Result<Instance>;

    /// The sealed secret of an instance.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] for the instance.
    fn secret(&self, connector_id: &str) -> Result<Option<StoredSecret>>;

    /// Secrets that another key than this sealed, behind a place.
    ///
    /// # Errors
    /// Where the store fails.
    fn secrets_not_under(&self, key_id: &str, after: i64, limit: u32) -> Result<Vec<StoredSecret>>;

    /// Replaces a sealed secret by the same one under another key; false where it was replaced or resealed meanwhile.
    ///
    /// # Errors
    /// Where the store fails.
    fn reseal(&self, old: &StoredSecret, new: &Sealed) -> Result<bool>;

    /// Disables an instance for good; what it collected stays. A run in flight loses its claim.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn disable(&self, connector_id: &str, now: i64) -> Result<Instance>;

    /// Makes an instance due at `at`, unless it is due earlier.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn pull_in(&self, connector_id: &str, at: i64, because: &str) -> Result<i64>;

    /// Claims instances that are due, the longest due first, and begins a run of each that `admit` lets in; the others
    /// are due when it says.
    ///
    /// # Errors
    /// Where the store fails; nothing is claimed then.
    fn claim_due(
        &self,
        now: i64,
        lease_until: i64,
        limit: u32,
        admit: &mut dyn FnMut(&Instance) -> Admission,
    ) -> Result<Vec<Claim>>;

    /// Claims one instance, due or not; `None` while a run of it is in flight.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn claim(&self, connector_id: &str, now: i64, lease_until: i64) -> Result<Option<Claim>>;

    /// When the next instance is due that nobody runs.
    ///
    /// # Errors
    /// Where the store fails.
    fn next_due(&self, now: i64) -> Result<Option<i64>>;

    /// Stores a page: its items, their versions, their changes, the run's figures and the checkpoint in one transaction.
    ///
    /// # Errors
    /// [`StoreError::LostClaim`].
    fn commit_page(&self, claim: &Claim, page: &PageCommit) -> Result<PageOutcome>;

    /// Ends a run without another page.
    ///
    /// # Errors
    /// [`StoreError::LostClaim`].
    fn end_run(&self, claim: &Claim, end: &RunEnd) -> Result<()>;

    /// Takes up what a process left that ended without a word: its runs are abandoned, its claims free. What was cut off
    /// is due an interval after its start, and what is overdue is spread: a restart asks nobody earlier or all at once.
    ///
    /// # Errors
    /// Where the store fails.
    fn recover(&self, now: i64) -> Result<u32>;

    /// Gives a claim back whose run could not be recorded: the run is abandoned, the instance due at `at`.
    ///
    /// # Errors
    /// Where the store fails; a claim that was lost meanwhile is no matter.
    fn give_back(&self, claim: &Claim, now: i64, at: i64) -> Result<()>;

    /// Mends times that a clock ahead of this one wrote, so that no instance waits for a day that is years away.
    ///
    /// # Errors
    /// Where the store fails.
    fn settle(&self, now: i64) -> Result<u32>;

    /// The hosts that are left alone, until when.
    ///
    /// # Errors
    /// Where the store fails.
    fn rests(&self, now: i64) -> Result<Vec<(String, i64)>>;

    /// Records that a state of health changed; false where it is the one that was told before.
    ///
    /// # Errors
    /// Where the store fails.
    fn tell_health(&self, connector_id: &str, health: &str, now: i64) -> Result<bool>;

    /// Runs of an instance, newest first, behind `before`.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn runs(&self, connector_id: &str, before: Option<&str>, limit: u32) -> Result<Vec<Run>>;

    /// Records by a query.
    ///
    /// # Errors
    /// Where the store fails.
    fn records(&self, query: &RecordQuery) -> Result<Vec<Record>>;

    /// One record.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn record(&self, record_id: &str) -> Result<Record>;

    /// Versions of a record, oldest first, behind an ordinal.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn versions(&self, record_id: &str, after: u32, limit: u32) -> Result<Vec<Version>>;

    /// One version of a record.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn version(&self, record_id: &str, version_id: &str) -> Result<Version>;

    /// How many records the instance's namespace has, and how many items its last document lists.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn counts(&self, connector_id: &str) -> Result<(u64, Option<u64>)>;

    /// Changes behind a number, in commit order.
    ///
    /// # Errors
    /// Where the store fails.
    fn changes(&self, query: &ChangeQuery) -> Result<ChangePage>;

    /// Takes out changes that are older than `before`, at most `limit`; returns how many went.
    ///
    /// # Errors
    /// Where the store fails.
    fn prune_changes(&self, before: i64, limit: u32) -> Result<u32>;

    /// What an idempotency key was used for; a conflict where the request was another one.
    ///
    /// # Errors
    /// [`StoreError::IdempotencyConflict`].
    fn used(&self, once: &Idempotency) -> Result<Option<String>>;

    /// Remembers what an idempotency key was used for.
    ///
    /// # Errors
    /// Where the store fails.
    fn remember(&self, once: &Idempotency, resource_id: &str, now: i64) -> Result<()>;

    /// Keys of the API, the revoked ones too, by identifier.
    ///
    /// # Errors
    /// Where the store fails.
    fn api_keys(&self) -> Result<Vec<ApiKey>>;

    /// Adds a key.
    ///
    /// # Errors
    /// Where the store fails.
    fn add_api_key(&self, key: &ApiKey) -> Result<()>;

    /// Revokes a key for good.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn revoke_api_key(&self, key_id: &str, now: i64) -> Result<ApiKey>;
}
