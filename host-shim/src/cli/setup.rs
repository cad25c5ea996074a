//! What several commands need: the component, the client, the clock, bounded files.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::output::CliError;
use crate::config::{self, Config};
use crate::egress::client::{Client, Rules};
use crate::egress::dial::{self, Tls};
use crate::egress::resolver::Dns;
use crate::engine::image::Cache;
use crate::engine::limits::Limits;
use crate::engine::pin::Pin;
use crate::engine::plugin::Plugin;
use crate::engine::runtime::Runtime;

/// The component's file beside the program.
const COMPONENT: &str = "connector.rss.wasm";

/// What this host calls itself where nothing else is configured.
pub(super) const USER_AGENT: &str =
    concat!("host-shim/", env!("CARGO_PKG_VERSION"), " (feed connector; contact: set user_agent)");

/// Bytes of a configuration, checkpoint or credential file.
pub(super) const MAX_SMALL_FILE: u64 = 1024 * 1024;

/// What every command takes.
#[derive(Debug)]
pub(super) struct Common {
    /// The component as given.
    pub(super) plugin: Option<PathBuf>,
    /// One JSON object a line.
    pub(super) json: bool,
}

impl Common {
    /// The component's file: as given, else beside this program.
    pub(super) fn component(&self) -> Result<PathBuf, CliError> {
        match &self.plugin {
            Some(path) => Ok(path.clone()),
            None => std::env::current_exe()
                .map(|exe| exe.with_file_name(COMPONENT))
                .map_err(|e| CliError::file("find", Path::new(COMPONENT), e)),
        }
    }

    /// The configuration of the service: the file's, else the defaults; without any pin the component beside the program.
    pub(super) fn configuration(&self, path: Option<&Path>) -> Result<Config, CliError> {
        let (text, base) = match path {
            Some(path) => (read_text(path)?, path.parent().unwrap_or(Path::new(".")).to_owned()),
            None => (String::new(), PathBuf::from(".")),
        };
        let (mut config, warnings) =
            config::read(&text, &base, USER_AGENT).map_err(|e| CliError::Usage(e.to_string()))?;
        for warning in warnings {
            super::output::complain(&warning);
        }
        if config.plugins.is_empty() {
            config.plugins.push(Pin { path: self.component()?, sha256: None, configuration: "{}".to_owned() });
        }
        Ok(config)
    }

    /// Loads the component with a configuration.
    pub(super) async fn load(&self, configuration: &str) -> Result<Plugin, CliError> {
        load(&self.component()?, configuration).await
    }
}

/// Loads a component that a person named.
pub(super) async fn load(path: &Path, configuration: &str) -> Result<Plugin, CliError> {
    let runtime = Runtime::new(Limits::DEFAULT)?;
    let pin = Pin { path: path.to_owned(), sha256: None, configuration: configuration.to_owned() };
    Ok(Plugin::load(&runtime, &pin, cache().as_ref()).await?)
}

/// The cache of compiled components of this user.
fn cache() -> Option<Cache> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache")))?;
    Cache::open(&base.join("host-shim"))
}

/// The client of a command; `authority` is a PEM file of the caller's own.
pub(super) fn client(user_agent: &str, authority: Option<&Path>) -> Result<Client, CliError> {
    let authorities = match authority {
        Some(path) => dial::authorities(&read_bounded(path, MAX_SMALL_FILE)?)?,
        None => Vec::new(),
    };
    Ok(Client::new(Arc::new(Dns::system()?), Tls::new(&authorities)?, user_agent)?)
}

/// What a command may reach, from the file of a pin's configuration; and what of it the component is told.
pub(super) fn rules(configuration: Option<&Path>, allow_private: bool) -> Result<(Rules, String), CliError> {
    let text = match configuration {
        Some(path) => read_text(path)?,
        None => serde_json::json!({"allow_private_addresses": allow_private}).to_string(),
    };
    let (mut rules, rest) = Rules::of(&text).map_err(|e| CliError::Usage(e.to_string()))?;
    rules.private_addresses |= allow_private;
    Ok((rules, rest))
}

/// The clock of a command: as given, else the machine's, in whole seconds.
pub(super) fn now(given: Option<&str>) -> Result<String, CliError> {
    match given {
        Some(text) => text.parse::<jiff::Timestamp>().map(|_| text.to_owned()).map_err(|_| {
            CliError::Usage(format!("--now {text:?} is not an RFC 3339 instant such as 2026-09-28T12:00:00Z"))
        }),
        None => {
            let seconds = jiff::Timestamp::now().as_second();
            Ok(jiff::Timestamp::from_second(seconds).unwrap_or_default().to_string())
        }
    }
}

/// Reads a file up to a bound.
pub(super) fn read_bounded(path: &Path, bound: u64) -> Result<Vec<u8>, CliError> {
    let failed = |e| CliError::file("read", path, e);
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(bound + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > bound {
        return Err(CliError::TooLong { path: path.display().to_string(), bound });
    }
    Ok(bytes)
}

/// Reads a small text file.
pub(super) fn read_text(path: &Path) -> Result<String, CliError> {
    String::from_utf8(read_bounded(path, MAX_SMALL_FILE)?)
        .map_err(|_| CliError::Usage(format!("{} is not UTF-8 text", path.display())))
}

/// Writes under another name first, so that an interrupted command leaves the old file whole.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.part", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    });
    written.map_err(|e| CliError::file("write", path, e))
}

/// A write beyond the limit of file sizes becomes an error of that write instead of the end of the process
/// (setrlimit(2)): a full disk costs the writes that do not fit, and nothing else.
pub(super) fn survive_size_limits() {
    #[cfg(target_os = "linux")]
    {
        use tokio::signal::unix::{SignalKind, signal};
        /// SIGXFSZ, signal(7).
        const FILE_SIZE: i32 = 25;
        // Whoever listens has taken the default, which is to end, out of force for good.
        drop(signal(SignalKind::from_raw(FILE_SIZE)));
    }
}

/// Waits for an interrupt or a request to terminate.
pub(super) async fn wait_for_signal() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    // Without signals the process runs until it is killed.
    let _ = interrupt.await;
}
