//! Migrations: files in order, each once, and no way back.

use rusqlite::{Connection, TransactionBehavior};

use crate::store::{Result, StoreError};

/// The migrations; the schema's number is how many have run.
const MIGRATIONS: &[&str] = &[include_str!("../migrations/0001_start.sql")];

/// Brings a file to the newest schema, each step in a transaction of its own.
pub(super) fn run(connection: &mut Connection) -> Result<()> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > known {
        return Err(StoreError::NewerSchema { found, known });
    }
    for (number, migration) in (1_i64..).zip(MIGRATIONS) {
        if number <= found {
            continue;
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    Ok(())
}
