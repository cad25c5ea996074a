//! The reference of the configuration file, made of the same constants that its reader goes by.
//!
//! Owns what each key means to people. `host-shim.example.toml` and `docs/configuration.md` are its output.

use std::fmt::Write as _;

use super::{CONCURRENT_RUNS, HOST_GAP_MS, LISTEN, MAX_PACE_SECONDS, MIN_INTERVAL};
use crate::egress::turns::REQUESTS_PER_HOST;
use crate::engine::runtime::MAX_CALLS;

/// Columns of a comment.
const WIDTH: usize = 118;

/// A key.
struct Key {
    name: &'static str,
    /// Its default; without one an example.
    value: Value,
    /// What it is for, its unit and its range.
    meaning: String,
}

enum Value {
    Default(String),
    Example(&'static str),
}

/// A table of the file.
struct Table {
    header: &'static str,
    meaning: &'static str,
    keys: Vec<Key>,
}

fn key(name: &'static str, value: Value, meaning: impl Into<String>) -> Key {
    Key { name, value, meaning: meaning.into() }
}

fn quoted(text: &str) -> Value {
    Value::Default(format!("\"{text}\""))
}

fn number(value: impl std::fmt::Display) -> Value {
    Value::Default(value.to_string())
}

fn service() -> Table {
    Table {
        header: "",
        meaning: "",
        keys: vec![
            key(
                "data_dir",
                quoted("data"),
                "Folder of the store, its lock and the cache of compiled components; relative to this file.",
            ),
            key(
                "listen",
                quoted(LISTEN),
                "Where the REST API listens: loopback unless you say otherwise; port 0 takes a free one. There is no TLS here: put a reverse proxy before it where calls come from elsewhere.",
            ),
            key(
                "user_agent",
                Value::Example("\"host-shim/0.1.0 (feeds@example.org)\""),
                "What publishers see. Name a way to reach you: they write to it before they block it.",
            ),
            key(
                "dns_servers",
                Value::Example("[\"9.9.9.9:53\"]"),
                "Name servers to ask; none means those of the system.",
            ),
            key(
                "tls_authorities",
                Value::Example("[\"company-ca.pem\"]"),
                "PEM files with authorities of your own, beside those of the machine: for feeds behind a company's certificates. There is no switch that turns verification off. Relative to this file.",
            ),
            key(
                "credential_key_file",
                Value::Example("\"credential.key\""),
                "File with the key that seals credentials at rest: 32 bytes or more, such as `openssl rand -base64 32` makes. Without it calls that bring a credential answer 503 credentials_unavailable and everything else works. Keep a copy of it apart from the backups: who has both reads the credentials. Relative to this file.",
            ),
            key(
                "old_credential_key_files",
                Value::Example("[\"credential.key.2025\"]"),
                "Files with older keys, which open what `host-shim credentials rotate` has not sealed anew yet.",
            ),
        ],
    }
}

fn schedule() -> Table {
    Table {
        header: "[schedule]",
        meaning: "",
        keys: vec![
            key(
                "min_interval_seconds",
                number(MIN_INTERVAL),
                "The shortest interval between two polls of a feed, in seconds, 1 to 86400. Publishers ask for half an hour and more.",
            ),
            key("max_concurrent_runs", number(CONCURRENT_RUNS), format!("Runs at once, 1 to {MAX_CALLS}.")),
            key(
                "requests_per_host",
                number(REQUESTS_PER_HOST),
                format!("Requests at a time to one host, 1 to {MAX_CALLS}."),
            ),
            key(
                "host_gap_ms",
                number(HOST_GAP_MS),
                "Milliseconds between two requests to one host, 0 to 600000. With the default a thousand feeds of one \
                 host take half an hour, so none of them is polled more often.",
            ),
            key(
                "max_pace_seconds",
                number(MAX_PACE_SECONDS),
                "The longest of each wait that a source declares (ttl, Cache-Control, Expires, the period of the \
                 syndication module) that counts, in seconds, 0 to 604800. A wait that it asks for by Retry-After \
                 always counts, up to a day.",
            ),
        ],
    }
}

fn plugins() -> Table {
    Table {
        header: "[[plugins]]",
        meaning: "A component to run, by its file and its digest (`host-shim inspect FILE` shows it). Without any pin the connector.rss.wasm beside the program is used. A pin that cannot be used is told and left out; the others go on.",
        keys: vec![
            key("path", Value::Example("\"connector.rss.wasm\""), "The component's file; relative to this file."),
            key(
                "sha256",
                Value::Example("\"0000000000000000000000000000000000000000000000000000000000000000\""),
                "Its digest: a file with another one is not run.",
            ),
        ],
    }
}

fn configuration() -> Table {
    Table {
        header: "[plugins.configuration]",
        meaning: "What the component is told, by its own schema, and what is open for it beyond public addresses. Everything that is opened here can be read by whoever may create an instance, so open as little as the feeds need; what is open is said at start and in GET /v0/connector-kinds. Metadata addresses stay refused unless allow_networks names that one address.",
        keys: vec![
            key(
                "allow_private_addresses",
                Value::Default("false".to_owned()),
                "Every private address and every port: for local tests only.",
            ),
            key("allow_networks", Value::Example("[\"10.20.0.0/16\"]"), "Networks whose addresses may be dialed."),
            key(
                "allow_hosts",
                Value::Example("[\"feeds.corp.internal\"]"),
                "Names that look local and may be resolved all the same; their addresses are judged like any other.",
            ),
            key("allow_ports", Value::Example("[81]"), "Ports beside 80, 443 and those from 1024 that serve no feeds."),
            key(
                "nat64_prefixes",
                Value::Example("[\"64:ff9b::/96\"]"),
                "Prefixes of your own NAT64 translator: an address below one is judged by the IPv4 address inside (RFC 6052).",
            ),
        ],
    }
}

fn tables() -> [Table; 4] {
    [service(), schedule(), plugins(), configuration()]
}

/// The reference as a TOML file in which every key stands as a comment with its default.
#[must_use]
pub fn example() -> String {
    let mut text =
        String::from("# Configuration of `host-shim serve`. Every key is here, with its default where it has one.\n");
    for table in tables() {
        if !table.header.is_empty() {
            text.push('\n');
            comment(&mut text, table.meaning);
            // A pin without a path is none, so its table starts as a comment; that of the schedule may stand empty.
            let mark = if table.header.contains("plugins") { "# " } else { "" };
            let _ = writeln!(text, "{mark}{}", table.header);
        }
        for (n, key) in table.keys.iter().enumerate() {
            if n > 0 || table.header.is_empty() {
                text.push('\n');
            }
            comment(&mut text, &key.meaning);
            let value = match &key.value {
                Value::Default(value) => value,
                Value::Example(value) => *value,
            };
            let _ = writeln!(text, "# {} = {value}", key.name);
        }
    }
    text
}

fn comment(text: &mut String, meaning: &str) {
    let mut line = String::from("#");
    for word in meaning.split(' ').filter(|w| !w.is_empty()) {
        if line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    if line.len() > 1 {
        let _ = writeln!(text, "{line}");
    }
}

/// The reference as a page.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from(
        "# Configuration reference\n\n\
         `host-shim serve --config FILE` reads TOML; every command that works on a data folder takes the same file. An\n\
         unknown key is refused by its name, a value out of range too. `host-shim configuration` prints a file to start\n\
         from, `host-shim configuration --markdown` this page.\n",
    );
    for table in tables() {
        let name = if table.header.is_empty() { "top level" } else { table.header };
        let _ =
            writeln!(text, "\n## {}\n", if table.header.is_empty() { name.to_owned() } else { format!("`{name}`") });
        if !table.meaning.is_empty() {
            let _ = writeln!(text, "{}\n", table.meaning);
        }
        text.push_str("| key | default | meaning |\n|---|---|---|\n");
        for key in &table.keys {
            let default = match &key.value {
                Value::Default(value) => format!("`{value}`"),
                Value::Example(value) => format!("none; such as `{value}`"),
            };
            let _ = writeln!(text, "| `{}` | {default} | {} |", key.name, key.meaning);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::egress::rules::Rules;

    fn names(table: &Table) -> Vec<&str> {
        table.keys.iter().map(|k| k.name).collect()
    }

    /// The members that a reader of TOML knows, as it says itself when it meets another.
    fn known(table: &str) -> Vec<String> {
        let text = format!("{table}\nno_such_key = 1");
        let error = super::super::read(&text, Path::new("/"), "agent").unwrap_err().to_string();
        let list = error.split("expected").nth(1).unwrap();
        list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn every_key_is_documented() {
        let own = |table: &str| known(table).into_iter().filter(|k| k != "schedule" && k != "plugins");
        assert_eq!(names(&service()), own("").collect::<Vec<_>>());
        assert_eq!(names(&schedule()), known("[schedule]"));
        let pin = known("[[plugins]]");
        assert_eq!(names(&plugins()), pin.iter().filter(|k| *k != "configuration").collect::<Vec<_>>());
    }

    #[test]
    fn the_files_are_what_the_code_says() {
        // `make reference` writes them.
        assert_eq!(include_str!("../../host-shim.example.toml"), example());
        assert_eq!(include_str!("../../../docs/configuration.md"), markdown());
    }

    #[test]
    fn the_example_is_valid_as_it_is_and_with_each_key_in_force() {
        let read = |text: &str| super::super::read(text, Path::new("/"), "agent").unwrap().0;
        assert_eq!(read(&example()), read(""));
        let all: Vec<&str> = include_str!("../../host-shim.example.toml")
            .lines()
            .map(|l| l.strip_prefix("# ").filter(|l| l.contains(" = ") || l.starts_with('[')).unwrap_or(l))
            .collect();
        let (config, warnings) = super::super::read(&all.join("\n"), Path::new("/"), "agent").unwrap();
        assert!(warnings.is_empty());
        let (rules, rest) = Rules::of(&config.plugins[0].configuration).unwrap();
        assert_eq!(rules.sentences().len(), 4, "{:?}", rules.sentences());
        // No key of the policy is passed on to the component as if it were its own, but the one it knows itself.
        assert!(!rest.contains("allow_networks"), "{rest}");
        assert_eq!((config.min_interval_seconds, config.max_concurrent_runs), (MIN_INTERVAL, CONCURRENT_RUNS));
    }
}
