//! The configuration file of `host-shim serve` (TOML).
//!
//! Owns its keys, their ranges and their defaults. Unknown keys are refused by name; numbers out of range are refused,
//! or clamped with a warning where a clamp does no harm. `host-shim.example.toml` documents every key.

pub mod reference;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::corpus::hosts::Manners;
use crate::egress::rules::Rules;
use crate::egress::turns::{Politeness, REQUESTS_PER_HOST};
use crate::engine::pin::{Digest, Pin};
use crate::engine::runtime::MAX_CALLS;

/// Bytes of a configuration file.
pub const MAX_BYTES: u64 = 1024 * 1024;

/// The floor of intervals, in seconds: Quivr's.
const MIN_INTERVAL: u32 = 30;

/// Runs at once where the file does not say.
const CONCURRENT_RUNS: u32 = 8;

/// Milliseconds between two requests to one host where the file does not say.
const HOST_GAP_MS: u32 = 2_000;

/// The longest of each declared wait that counts where the file does not say: an hour, as Quivr's plugin has it.
const MAX_PACE_SECONDS: u32 = 3_600;

/// Where the API listens where the file does not say: loopback only.
const LISTEN: &str = "127.0.0.1:8700";

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// Not TOML, an unknown key, a value of another type.
    #[error("the configuration cannot be read: {0}")]
    Form(String),
    /// A value that is none.
    #[error("{key} = {value:?} is not valid: {why}")]
    Value {
        /// Key.
        key: &'static str,
        /// Value.
        value: String,
        /// Rule.
        why: &'static str,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    data_dir: Option<PathBuf>,
    listen: Option<String>,
    user_agent: Option<String>,
    dns_servers: Vec<String>,
    tls_authorities: Vec<PathBuf>,
    credential_key_file: Option<PathBuf>,
    old_credential_key_files: Vec<PathBuf>,
    schedule: ScheduleTable,
    plugins: Vec<PluginTable>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ScheduleTable {
    min_interval_seconds: Option<u32>,
    max_concurrent_runs: Option<u32>,
    requests_per_host: Option<u32>,
    host_gap_ms: Option<u32>,
    max_pace_seconds: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginTable {
    path: PathBuf,
    sha256: String,
    #[serde(default)]
    configuration: toml::Table,
}

/// What the service goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Folder of the store.
    pub data_dir: PathBuf,
    /// Where the API listens.
    pub listen: SocketAddr,
    /// What the host calls itself.
    pub user_agent: String,
    /// Name servers; none means the system's.
    pub dns_servers: Vec<SocketAddr>,
    /// PEM files with authorities of the operator's own.
    pub tls_authorities: Vec<PathBuf>,
    /// The file with the key that seals credentials; without it none are taken.
    pub credential_key_file: Option<PathBuf>,
    /// Files with older keys, which only open.
    pub old_credential_key_files: Vec<PathBuf>,
    /// The shortest interval.
    pub min_interval_seconds: u32,
    /// Runs at once.
    pub max_concurrent_runs: u32,
    /// Requests at a time to one host.
    pub requests_per_host: u32,
    /// Milliseconds between two requests to one host.
    pub host_gap_ms: u32,
    /// The longest of each wait that a source declares that counts.
    pub max_pace_seconds: u32,
    /// Pins; none means the component beside the program.
    pub plugins: Vec<Pin>,
}

impl Config {
    /// How each request spares its host.
    #[must_use]
    pub fn politeness(&self) -> Politeness {
        Politeness { at_once: self.requests_per_host, gap: Duration::from_millis(u64::from(self.host_gap_ms)) }
    }

    /// The same for the schedule.
    #[must_use]
    pub fn manners(&self) -> Manners {
        Manners { at_once: self.requests_per_host, gap_ms: i64::from(self.host_gap_ms) }
    }
}

/// A number of the schedule, or its default.
fn ranged(
    key: &'static str,
    given: Option<u32>,
    default: u32,
    range: RangeInclusive<u32>,
    why: &'static str,
) -> Result<u32, ConfigError> {
    let value = given.unwrap_or(default);
    if range.contains(&value) { Ok(value) } else { Err(ConfigError::Value { key, value: value.to_string(), why }) }
}

/// Reads a configuration. `base` is the folder that relative paths start from. Warnings name what was clamped.
///
/// # Errors
/// What is wrong, with the key.
pub fn read(text: &str, base: &Path, user_agent: &str) -> Result<(Config, Vec<String>), ConfigError> {
    let file: File = toml::from_str(text).map_err(|e| ConfigError::Form(e.message().to_owned() + &place(text, &e)))?;
    let mut warnings = Vec::new();
    let listen = file.listen.unwrap_or_else(|| LISTEN.to_owned());
    let address = |key: &'static str, value: &str, why: &'static str| {
        value.parse::<SocketAddr>().map_err(|_| ConfigError::Value { key, value: value.to_owned(), why })
    };
    let schedule = &file.schedule;
    let min_interval_seconds = ranged(
        "schedule.min_interval_seconds",
        schedule.min_interval_seconds,
        MIN_INTERVAL,
        1..=86_400,
        "1 to 86400 seconds",
    )?;
    let requests_per_host =
        ranged("schedule.requests_per_host", schedule.requests_per_host, REQUESTS_PER_HOST, 1..=MAX_CALLS, "1 to 32")?;
    let host_gap_ms =
        ranged("schedule.host_gap_ms", schedule.host_gap_ms, HOST_GAP_MS, 0..=600_000, "0 to 600000 milliseconds")?;
    let max_pace_seconds = ranged(
        "schedule.max_pace_seconds",
        schedule.max_pace_seconds,
        MAX_PACE_SECONDS,
        0..=604_800,
        "0 to 604800 seconds",
    )?;
    let wanted = file.schedule.max_concurrent_runs.unwrap_or(CONCURRENT_RUNS);
    let max_concurrent_runs = wanted.clamp(1, MAX_CALLS);
    if wanted != max_concurrent_runs {
        warnings
            .push(format!("schedule.max_concurrent_runs = {wanted} is out of range, {max_concurrent_runs} is used"));
    }
    let user_agent = file.user_agent.unwrap_or_else(|| user_agent.to_owned());
    if user_agent.trim().is_empty() || !user_agent.bytes().all(|b| (0x20..0x7F).contains(&b)) {
        let why = "a line of printable ASCII that names a contact";
        return Err(ConfigError::Value { key: "user_agent", value: user_agent, why });
    }
    Ok((
        Config {
            data_dir: base.join(file.data_dir.unwrap_or_else(|| PathBuf::from("data"))),
            listen: address("listen", &listen, "an address and a port, such as 127.0.0.1:8700")?,
            user_agent,
            dns_servers: file
                .dns_servers
                .iter()
                .map(|s| address("dns_servers", s, "addresses with ports, such as 9.9.9.9:53"))
                .collect::<Result<_, _>>()?,
            tls_authorities: file.tls_authorities.iter().map(|path| base.join(path)).collect(),
            credential_key_file: file.credential_key_file.map(|path| base.join(path)),
            old_credential_key_files: file.old_credential_key_files.iter().map(|path| base.join(path)).collect(),
            min_interval_seconds,
            max_concurrent_runs,
            requests_per_host,
            host_gap_ms,
            max_pace_seconds,
            plugins: file.plugins.into_iter().map(|p| pin(p, base)).collect::<Result<_, _>>()?,
        },
        warnings,
    ))
}

fn pin(table: PluginTable, base: &Path) -> Result<Pin, ConfigError> {
    let why = "64 hexadecimal digits, as `host-shim inspect` shows them";
    let digest = Digest::parse(&table.sha256).ok_or_else(|| ConfigError::Value {
        key: "plugins.sha256",
        value: table.sha256.clone(),
        why,
    })?;
    let configuration = serde_json::to_string(&table.configuration).map_err(|e| ConfigError::Form(e.to_string()))?;
    Rules::of(&configuration).map_err(|e| ConfigError::Form(format!("plugins.configuration: {e}")))?;
    Ok(Pin { path: base.join(table.path), sha256: Some(digest), configuration })
}

fn place(text: &str, error: &toml::de::Error) -> String {
    error
        .span()
        .and_then(|span| text.get(..span.start))
        .map(|before| format!(" (line {})", before.matches('\n').count() + 1))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<(Config, Vec<String>), ConfigError> {
        read(text, Path::new("/etc/host-shim"), "agent (contact)")
    }

    #[test]
    fn an_empty_file_has_the_defaults() {
        let (config, _) = config("").unwrap();
        assert_eq!(config.listen.to_string(), "127.0.0.1:8700");
        assert_eq!((config.min_interval_seconds, config.max_concurrent_runs), (30, 8));
        assert_eq!((config.requests_per_host, config.host_gap_ms, config.max_pace_seconds), (2, 2_000, 3_600));
        assert_eq!(config.data_dir, Path::new("/etc/host-shim/data"));
    }

    #[test]
    fn what_is_unknown_or_out_of_range_is_named() {
        for (text, word) in [
            ("colour = 1", "colour"),
            ("[schedule]\nfloor = 1", "floor"),
            ("[schedule]\nmin_interval_seconds = 0", "1 to 86400"),
            ("[schedule]\nrequests_per_host = 0", "1 to 32"),
            ("[schedule]\nhost_gap_ms = 600001", "600000"),
            ("[schedule]\nmax_pace_seconds = 700000", "604800"),
            ("[schedule]\nmin_interval_seconds = \"x\"", "line 2"),
            ("listen = \"everywhere\"", "everywhere"),
            ("user_agent = \"  \"", "contact"),
            ("dns_servers = [\"9.9.9.9\"]", "9.9.9.9"),
            ("[[plugins]]\npath = \"x.wasm\"", "sha256"),
            (
                "[[plugins]]\npath = \"x.wasm\"\nsha256 = \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"\n\
                 [plugins.configuration]\nallow_ports = [0]",
                "allow_ports",
            ),
            ("[[plugins]]\npath = \"x.wasm\"\nsha256 = \"abc\"", "inspect"),
            ("listen = ", "line 1"),
        ] {
            let error = config(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        let (clamped, warnings) = config("[schedule]\nmax_concurrent_runs = 900").unwrap();
        assert_eq!(clamped.max_concurrent_runs, MAX_CALLS);
        assert!(warnings[0].contains("900") && warnings[0].contains(&MAX_CALLS.to_string()));
    }
}
