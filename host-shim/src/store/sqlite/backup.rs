//! Copies of the store: made while it is in use, checked, put back.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::{FILE, migrate, open};
use crate::store::{Result, StoreError};

/// What a file of the store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    /// Schema.
    pub schema: i64,
    /// Instances.
    pub instances: u64,
    /// Records.
    pub records: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Copies the store of a folder as it is at one moment; whoever uses it goes on.
///
/// # Errors
/// Where there is none, the copy's place is taken, or the copy does not hold together.
pub fn back_up(folder: &Path, to: &Path) -> Result<Contents> {
    refuse_taken(to)?;
    let from = folder.join(FILE);
    // Not made where it is missing: a backup of nothing would look like one.
    let connection = open(&from, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let part = part(to);
    let _ = fs::remove_file(&part);
    let copied = copy(&connection, &part).and_then(|()| {
        let contents = check(&part)?;
        File::open(&part).and_then(|f| f.sync_all()).and_then(|()| fs::rename(&part, to)).map_err(unwritten)?;
        Ok(contents)
    });
    if copied.is_err() {
        let _ = fs::remove_file(&part);
    }
    copied
}

fn copy(connection: &Connection, to: &Path) -> Result<()> {
    let name = to.to_str().ok_or_else(|| StoreError::Engine("the copy's name is not UTF-8".to_owned()))?;
    connection.execute("VACUUM INTO ?1", [name])?;
    Ok(())
}

/// Puts a copy into a folder that has no store.
///
/// # Errors
/// Where the folder has one, or the copy is none that this program can use.
pub fn restore(from: &Path, folder: &Path) -> Result<Contents> {
    let to = folder.join(FILE);
    refuse_taken(&to)?;
    let contents = check(from)?;
    let part = part(&to);
    fs::copy(from, &part).map_err(unwritten)?;
    // Left by a store that stood here: they would be read as the copy's own.
    for ending in ["-wal", "-shm"] {
        let _ = fs::remove_file(folder.join(format!("{FILE}{ending}")));
    }
    File::open(&part).and_then(|f| f.sync_all()).and_then(|()| fs::rename(&part, &to)).map_err(unwritten)?;
    File::open(folder).and_then(|f| f.sync_all()).map_err(unwritten)?;
    Ok(contents)
}

/// Reads a file of the store from end to end.
///
/// # Errors
/// Where it is none, is damaged, or was written by a newer program.
pub fn check(path: &Path) -> Result<Contents> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(StoreError::Damaged(found));
    }
    let schema = migrate::schema_of(&connection)?;
    let count = |table: &str| -> Result<u64> {
        let count: i64 = connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    };
    let bytes = fs::metadata(path).map_err(unwritten)?.len();
    Ok(Contents { schema, instances: count("instance")?, records: count("record")?, bytes })
}

fn refuse_taken(path: &Path) -> Result<()> {
    match path.exists() {
        true => Err(StoreError::Taken(path.display().to_string())),
        false => Ok(()),
    }
}

fn part(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

fn unwritten(error: std::io::Error) -> StoreError {
    StoreError::Engine(error.to_string())
}
