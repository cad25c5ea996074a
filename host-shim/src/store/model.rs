//! What the host keeps, in plain types.
//!
//! Owns the shapes that the store's trait speaks in. Times are milliseconds since 1970 in UTC. Must not know SQL or
//! HTTP.

use serde_json::Value;

use crate::engine::answer::{Item, WindowEntry};

/// A place for records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corpus {
    /// Identifier.
    pub corpus_id: String,
    /// Name, unique.
    pub name: String,
    /// When it was made.
    pub created_at: i64,
}

/// A secret as the store has it: ciphertext, and which key opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Nonce and ciphertext.
    pub bytes: Vec<u8>,
    /// Name of the key.
    pub key_id: String,
}

/// A credential to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deposit {
    /// The secret.
    pub sealed: Sealed,
    /// When the source stops accepting it.
    pub expires_at: Option<i64>,
}

/// What may be known of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialInfo {
    /// Counts the deposits, from 1.
    pub version: u32,
    /// When it came.
    pub deposited_at: i64,
    /// When the source stops accepting it.
    pub expires_at: Option<i64>,
}

/// A sealed secret and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSecret {
    /// Place in the order of creation.
    pub seq: i64,
    /// Instance.
    pub connector_id: String,
    /// Deposit.
    pub version: u32,
    /// The secret.
    pub sealed: Sealed,
}

/// An instance to be made.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewInstance {
    /// Identifier.
    pub connector_id: String,
    /// Corpus that the records go to.
    pub corpus_id: String,
    /// Namespace of the records; one enabled instance owns it.
    pub source_namespace: String,
    /// Name, unique among the enabled ones of a corpus.
    pub name: String,
    /// Labels.
    pub labels: Value,
    /// Kind.
    pub kind: String,
    /// Config for the connector.
    pub config: Value,
    /// Seconds between two runs.
    pub interval_seconds: u32,
    /// Seconds without a new item after which it counts as silent.
    pub silent_after_seconds: u32,
    /// Seconds before a credential expires in which it is warned of.
    pub credential_warning_seconds: u32,
    /// Checkpoint to start from, when it comes from another deployment.
    pub checkpoint: Option<String>,
    /// Credential to start with.
    pub credential: Option<Deposit>,
}

/// A permanent redirect that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Where it points to.
    pub to: String,
    /// First seen.
    pub since: i64,
    /// On how many days.
    pub days: u32,
}

/// The last failure of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastError {
    /// Class.
    pub class: String,
    /// Code.
    pub code: String,
    /// Sentence.
    pub message: String,
    /// When.
    pub at: i64,
}

/// An instance as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Instance {
    /// Place in the order of creation.
    pub seq: i64,
    /// What it was made from.
    pub new: NewInstance,
    /// When it was made.
    pub created_at: i64,
    /// When it was disabled.
    pub disabled_at: Option<i64>,
    /// What the last document said of itself.
    pub diagnostics: Option<Value>,
    /// When it runs next.
    pub next_run_at: i64,
    /// Why then.
    pub next_run_because: String,
    /// When it was due before it had to wait for others of its host.
    pub due_at: i64,
    /// When a whole document was last read.
    pub full_at: Option<i64>,
    /// The source is not asked before.
    pub not_before: i64,
    /// Start of the last run.
    pub last_run_at: Option<i64>,
    /// End of the last run that succeeded.
    pub last_success_at: Option<i64>,
    /// When a page last made a new revision.
    pub last_item_at: Option<i64>,
    /// Last failure.
    pub last_error: Option<LastError>,
    /// The source refuses this reader.
    pub access_error: bool,
    /// Health as last told in a change.
    pub health: String,
    /// Requests of the day named.
    pub reads: (i64, u32),
    /// When it was paused.
    pub paused_at: Option<i64>,
    /// What may be known of its credential.
    pub credential: Option<CredentialInfo>,
    /// What the source says of its pace.
    pub hints: Option<Value>,
    /// What only the operator sees of the last failure.
    pub error_detail: Option<String>,
    /// Failures in a row.
    pub failures: u32,
    /// Turned away since when and by which host.
    pub throttled: Option<(i64, String)>,
    /// The permanent redirect that it meets.
    pub moved: Option<Moved>,
}

/// A claimed run: nobody else runs the instance until the lease ends, and only this fence may write.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The instance as it was claimed.
    pub instance: Instance,
    /// The run.
    pub run_id: String,
    /// Number of this claim.
    pub fence: i64,
    /// Start.
    pub started_at: i64,
    /// Checkpoint to start from.
    pub checkpoint: Option<String>,
    /// Body last processed whole, and by which component.
    pub body: Option<([u8; 32], [u8; 32])>,
}

/// Who made a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Producer {
    /// Plugin id.
    pub plugin_id: String,
    /// Plugin version.
    pub plugin_version: String,
    /// Plugin digest.
    pub plugin_digest: String,
}

/// Figures of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunFigures {
    /// Status of the last response.
    pub http_status: Option<u16>,
    /// Where it came from, without query.
    pub final_url: Option<String>,
    /// Requests made.
    pub requests: u32,
    /// Bytes on the wire.
    pub wire_bytes: u64,
}

/// A page to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct PageCommit {
    /// Items.
    pub items: Vec<Item>,
    /// Checkpoint after it.
    pub checkpoint: String,
    /// What the document lists.
    pub window: Option<Vec<WindowEntry>>,
    /// What the document said of itself; absent where none was read.
    pub diagnostics: Option<Value>,
    /// What the source says of its pace; absent where it said nothing.
    pub hints: Option<Value>,
    /// Who made it.
    pub producer: Producer,
    /// When.
    pub at: i64,
    /// Figures so far.
    pub figures: RunFigures,
    /// How the run ends, where this is its last page.
    pub end: Option<RunEnd>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It did its work.
    Completed,
    /// It was too early.
    Skipped,
    /// It failed.
    Failed,
}

impl Outcome {
    /// Name in the store and in answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }
}

/// What becomes of an instance that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It runs.
    Now,
    /// It waits for others of its host, until then.
    Queued(i64),
    /// Its host is left alone, until then.
    Resting(i64),
}

/// What a run saw of redirects that are meant to last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SawMoved {
    /// Nothing was answered, so nothing is known.
    Nothing,
    /// The address itself answered.
    No,
    /// Every hop from the first on is permanent, up to this address.
    To(String),
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// Outcome.
    pub outcome: Outcome,
    /// The failure.
    pub error: Option<LastError>,
    /// What only the operator sees.
    pub detail: Option<String>,
    /// Next run.
    pub next_run_at: i64,
    /// Why then.
    pub next_run_because: &'static str,
    /// The source is not asked before.
    pub not_before: i64,
    /// The body that was processed whole, and by which component.
    pub body: Option<([u8; 32], [u8; 32])>,
    /// Figures.
    pub figures: RunFigures,
    /// When it ended.
    pub at: i64,
    /// Component that ran.
    pub plugin_digest: Option<String>,
    /// The host that turned the run away.
    pub throttled_by: Option<String>,
    /// A host that is left alone, until when.
    pub rest: Option<(String, i64)>,
    /// A whole document was read.
    pub is_full: bool,
    /// What it saw of permanent redirects.
    pub moved: SawMoved,
}

/// What a page brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageOutcome {
    /// Records that were not there before.
    pub new: u32,
    /// Records with another version.
    pub changed: u32,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Identifier.
    pub run_id: String,
    /// Start.
    pub started_at: i64,
    /// End.
    pub ended_at: Option<i64>,
    /// `running`, `completed`, `skipped`, `failed` or `abandoned`.
    pub outcome: String,
    /// Failure.
    pub error: Option<(String, String, String)>,
    /// What only the operator sees.
    pub detail: Option<String>,
    /// Figures.
    pub figures: RunFigures,
    /// Pages.
    pub pages: u32,
    /// What it brought.
    pub brought: PageOutcome,
    /// Component.
    pub plugin_digest: Option<String>,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Place in the order of first sight.
    pub seq: i64,
    /// Identifier.
    pub record_id: String,
    /// Corpus.
    pub corpus_id: String,
    /// Namespace.
    pub namespace: String,
    /// Key.
    pub record_key: String,
    /// First sight.
    pub first_seen_at: i64,
    /// Sort time, set once.
    pub sort_time: i64,
    /// Where the sort time came from: `feed`, `first-seen` or `clamped`.
    pub sort_origin: String,
    /// Acceptance of the current version.
    pub accepted_at: i64,
    /// Current version.
    pub current_version_id: String,
    /// Its place.
    pub ordinal: u32,
    /// Its revision.
    pub revision: String,
    /// The source took it back.
    pub withdrawn: bool,
}

/// A version of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// Identifier.
    pub version_id: String,
    /// Place among the versions of its record, from 1.
    pub ordinal: u32,
    /// Revision.
    pub revision: String,
    /// Parts, as JSON.
    pub parts: Value,
    /// Extensions, as JSON.
    pub extensions: Value,
    /// The source took the item back.
    pub withdrawn: bool,
    /// When it was accepted.
    pub accepted_at: i64,
    /// Instance.
    pub connector_id: String,
    /// Run.
    pub run_id: String,
    /// Component.
    pub producer: Producer,
}

/// An entry of the append-only log.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Number, in commit order.
    pub seq: i64,
    /// When.
    pub at: i64,
    /// What.
    pub kind: String,
    /// Corpus.
    pub corpus_id: String,
    /// Kind of resource.
    pub resource_kind: String,
    /// Identifier of the resource.
    pub resource_id: String,
    /// Details.
    pub data: Value,
}

/// Which changes are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeQuery {
    /// Corpora; `None` means all.
    pub corpus_ids: Option<Vec<String>>,
    /// Behind this number.
    pub after: i64,
    /// At most so many.
    pub limit: u32,
}

/// Changes, and how far the log was read for them.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangePage {
    /// The changes, in commit order.
    pub items: Vec<Change>,
    /// Everything up to this number was looked at.
    pub read_up_to: i64,
    /// Everything up to this number was taken out.
    pub floor: i64,
    /// Number of the newest change there was.
    pub newest: i64,
}

/// A key of the API, without the key itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Identifier; it is no secret.
    pub key_id: String,
    /// What people call it.
    pub name: String,
    /// SHA-256 of the key.
    pub hash: [u8; 32],
    /// Scopes, joined by blanks.
    pub scopes: String,
    /// Corpora that it may know of; `None` means all.
    pub corpora: Option<Vec<String>>,
    /// When it was made.
    pub created_at: i64,
    /// When it was revoked.
    pub revoked_at: Option<i64>,
}

/// The order of a list of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordOrder {
    /// By identifier, which is the order of first sight.
    RecordId,
    /// Newest acceptance first.
    AcceptedDesc,
}

/// Which records are wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordQuery {
    /// Corpora, 1 to 16.
    pub corpus_ids: Vec<String>,
    /// Order.
    pub order: RecordOrder,
    /// Accepted at or after.
    pub accepted_after: Option<i64>,
    /// Accepted before.
    pub accepted_before: Option<i64>,
    /// Words that titles and bodies must have.
    pub text: Option<String>,
    /// Values that the current version's extensions must have, by path.
    pub metadata: Vec<(Vec<String>, Value)>,
    /// Continue behind this place: acceptance (for [`RecordOrder::AcceptedDesc`]) and sequence.
    pub after: Option<(i64, i64)>,
    /// At most so many.
    pub limit: u32,
}

/// A use of an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// What it is used for.
    pub scope: String,
    /// The key.
    pub key: String,
    /// Hash of the canonical request.
    pub request: [u8; 32],
}
