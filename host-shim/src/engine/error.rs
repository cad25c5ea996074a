//! What can go wrong with a component: before it runs, while it runs, and in what it returns.
//!
//! Owns the codes. Messages say what an operator can do and never carry what a guest returned.

use std::time::Duration;

use crate::egress::rules::RulesError;

/// Why a component cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The file cannot be read.
    #[error("cannot read the component at {path}: {source}; check the path of the pin")]
    Read {
        /// Path of the pin.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is larger than a component may be.
    #[error("the component at {path} is larger than {limit} bytes; this is not a connector")]
    TooLarge {
        /// Path of the pin.
        path: String,
        /// Bound in bytes.
        limit: u64,
    },
    /// The digest differs.
    #[error(
        "the component at {path} has digest sha256:{found}, but the pin says sha256:{pinned}; \
             pin the new digest only if you mean to run this file"
    )]
    Digest {
        /// Path of the pin.
        path: String,
        /// What the pin says.
        pinned: String,
        /// What the file has.
        found: String,
    },
    /// The file is no component.
    #[error("the file is not a WebAssembly component: {0}")]
    NotAComponent(String),
    /// It wants more than the contract gives.
    #[error(
        "the component imports {0}, which is not in the contract; a connector may import \
             corpus:connector/http and corpus:connector/log only"
    )]
    Import(String),
    /// It speaks another version.
    #[error(
        "the component speaks version {found} of the contract, this host speaks {spoken}; \
             use a component made for {spoken}, or another host"
    )]
    Version {
        /// The component's version.
        found: String,
        /// The host's version.
        spoken: &'static str,
    },
    /// It does not offer what a connector must.
    #[error("the component does not export {0}, which every connector must")]
    Export(String),
    /// The types differ from the contract's.
    #[error("the component does not fit the contract: {0}")]
    Types(String),
    /// wasmtime could not be set up or could not compile it.
    #[error("the component could not be compiled: {0}")]
    Compile(String),
    /// What its pin opens cannot be read.
    #[error("{0}")]
    Rules(#[from] RulesError),
    /// Its configuration does not fit its own schema.
    #[error("the pin's configuration does not fit the component's schema: {0}")]
    Configuration(String),
    /// Its descriptor breaks a rule.
    #[error("the descriptor of the component is not valid: {0}")]
    Descriptor(String),
    /// It could not be asked for its descriptor.
    #[error("the component could not describe itself: {0}")]
    Describe(#[from] CallError),
}

impl PinError {
    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "plugin_unreadable",
            Self::TooLarge { .. } => "plugin_too_large",
            Self::Digest { .. } => "plugin_digest_mismatch",
            Self::NotAComponent(_) => "plugin_not_a_component",
            Self::Import(_) => "plugin_import_refused",
            Self::Version { .. } => "plugin_contract_version",
            Self::Export(_) => "plugin_export_missing",
            Self::Types(_) => "plugin_type_mismatch",
            Self::Compile(_) => "plugin_compile_failed",
            Self::Descriptor(_) => "plugin_invalid_descriptor",
            Self::Describe(error) => error.code(),
            Self::Rules(_) | Self::Configuration(_) => "plugin_invalid_configuration",
        }
    }
}

/// Why a call brought no answer that can be used. It costs that one call and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The guest trapped.
    #[error("the component trapped ({trap}){}; report it with the feed's address to the component's author",
            .place.as_ref().map(|p| format!(" at {p}")).unwrap_or_default())]
    Trap {
        /// The trap by wasmtime's name for it.
        trap: String,
        /// Place of the panic, where the guest named one.
        place: Option<String>,
    },
    /// Guest time was used up.
    #[error("the component used up its {} ms of computing time and was stopped", .0.as_millis())]
    Cpu(Duration),
    /// The whole call took too long.
    #[error("the call took longer than {} ms and was stopped", .0.as_millis())]
    Wall(Duration),
    /// Memory or a table grew beyond its bound.
    #[error("the component needed more than {0} bytes of memory and was stopped")]
    Memory(usize),
    /// The answer breaks the contract.
    #[error("the component's answer breaks the contract ({reason}): {message}")]
    Invalid {
        /// Which rule, by its own code.
        reason: &'static str,
        /// The rule as a sentence.
        message: String,
    },
    /// The host could not make the call.
    #[error("the host could not run the component: {0}")]
    Host(String),
}

impl CallError {
    /// An answer that breaks a rule.
    pub(super) fn invalid(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Invalid { reason, message: message.into() }
    }

    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Trap { .. } => "plugin_trap",
            Self::Cpu(_) | Self::Wall(_) => "plugin_timeout",
            Self::Memory(_) => "plugin_memory",
            Self::Invalid { .. } => "plugin_invalid_response",
            Self::Host(_) => "plugin_unavailable",
        }
    }

    /// Which rule of the contract was broken.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Invalid { reason, .. } => Some(reason),
            _ => None,
        }
    }
}
