//! Migrations: files in order, each once, and no way back.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::search;
use crate::store::{Result, StoreError};

/// A step: its statements, and what they cannot say.
struct Migration {
    sql: &'static str,
    then: Option<fn(&Transaction<'_>) -> Result<()>>,
}

/// The migrations; the schema's number is how many have run.
const MIGRATIONS: &[Migration] = &[
    Migration { sql: include_str!("../migrations/0001_start.sql"), then: None },
    Migration { sql: include_str!("../migrations/0002_service.sql"), then: Some(search::index_all) },
    Migration { sql: include_str!("../migrations/0003_pace.sql"), then: None },
];

/// Brings a file to the newest schema, each step in a transaction of its own.
pub(super) fn run(connection: &mut Connection) -> Result<()> {
    schema_of(connection)?;
    for (number, migration) in (1_i64..).zip(MIGRATIONS) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Asked inside: another process may have migrated meanwhile.
        if number <= schema_of(&transaction)? {
            continue;
        }
        transaction.execute_batch(migration.sql)?;
        if let Some(then) = migration.then {
            then(&transaction)?;
        }
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    Ok(())
}

/// The schema of a file.
///
/// # Errors
/// Where a newer program wrote it.
pub(super) fn schema_of(connection: &Connection) -> Result<i64> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > known { Err(StoreError::NewerSchema { found, known }) } else { Ok(found) }
}
