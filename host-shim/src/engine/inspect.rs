//! What a component imports and exports, read from its bytes without compiling it.
//!
//! Owns the rule that a connector imports interfaces of the contract and nothing else, and the sentences for a
//! component that is none, wants more, or speaks another version.

use wasmparser::{Encoding, Parser, Payload};

use super::error::PinError;

/// The contract's package without its version.
const PACKAGE: &str = "corpus:connector";

/// The version of the contract that this host speaks.
pub const CONTRACT_VERSION: &str = "0.3.0";

/// Interfaces that a connector may import.
const IMPORTS: [&str; 2] = ["http", "log"];

/// Interfaces that a connector must export.
const EXPORTS: [&str; 2] = ["connector", "content"];

/// Names that are listed; a component with more is no connector.
const MAX_NAMES: usize = 256;

/// The outside of a component.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surface {
    /// Imports by name.
    pub imports: Vec<String>,
    /// Exports by name.
    pub exports: Vec<String>,
}

/// Reads the imports and exports of a component.
///
/// # Errors
/// Where the bytes are no component.
pub fn surface(bytes: &[u8]) -> Result<Surface, PinError> {
    if !bytes.starts_with(b"\0asm") {
        return Err(PinError::NotAComponent("it does not begin as WebAssembly does".to_owned()));
    }
    let broken = |e: wasmparser::BinaryReaderError| {
        PinError::NotAComponent(format!("{} (byte {})", e.message().lines().next().unwrap_or(""), e.offset()))
    };
    let mut surface = Surface::default();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(broken)? {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                return Err(PinError::NotAComponent("it is a core module; build it as a component".to_owned()));
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    surface.imports.push(import.map_err(broken)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    surface.exports.push(export.map_err(broken)?.name.name.to_owned());
                }
            }
            _ => {}
        }
        if surface.imports.len() + surface.exports.len() > MAX_NAMES {
            return Err(PinError::NotAComponent("it has more imports and exports than a connector".to_owned()));
        }
    }
    Ok(surface)
}

/// Holds a surface to the contract.
///
/// # Errors
/// The first import beyond it, another version of it, or a missing export.
pub fn check(surface: &Surface) -> Result<(), PinError> {
    for name in surface.imports.iter().chain(&surface.exports) {
        if let Some(version) = contract_version(name)
            && version != CONTRACT_VERSION
        {
            return Err(PinError::Version { found: version.to_owned(), spoken: CONTRACT_VERSION });
        }
    }
    let is = |name: &str, interface: &str| name == format!("{PACKAGE}/{interface}@{CONTRACT_VERSION}");
    if let Some(other) = surface.imports.iter().find(|n| !IMPORTS.iter().any(|i| is(n, i))) {
        return Err(PinError::Import(shown(other)));
    }
    match EXPORTS.iter().find(|e| !surface.exports.iter().any(|n| is(n, e))) {
        Some(missing) => Err(PinError::Export(format!("{PACKAGE}/{missing}@{CONTRACT_VERSION}"))),
        None => Ok(()),
    }
}

/// The version in a name of the contract's package.
fn contract_version(name: &str) -> Option<&str> {
    let (package, version) = name.split_once('@')?;
    package.strip_prefix(PACKAGE).filter(|rest| rest.starts_with('/'))?;
    Some(version)
}

/// A name from a stranger's file, short and without control characters.
fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn a_connector_imports_the_contract_and_nothing_else() {
        let exports = names(&["corpus:connector/connector@0.3.0", "corpus:connector/content@0.3.0"]);
        let with = |imports: &[&str]| check(&Surface { imports: names(imports), exports: exports.clone() });
        assert!(with(&["corpus:connector/http@0.3.0", "corpus:connector/log@0.3.0"]).is_ok());
        assert!(with(&[]).is_ok());
        for (import, code) in [
            ("wasi:cli/environment@0.2.0", "plugin_import_refused"),
            ("corpus:connector/store@0.3.0", "plugin_import_refused"),
            ("corpus:connector/http@0.1.0", "plugin_contract_version"),
            ("corpus:connector-x/http@0.3.0", "plugin_import_refused"),
            ("x", "plugin_import_refused"),
        ] {
            assert_eq!(with(&[import]).unwrap_err().code(), code, "{import}");
        }
    }

    #[test]
    fn a_connector_exports_both_interfaces() {
        let surface = Surface { imports: Vec::new(), exports: names(&["corpus:connector/connector@0.3.0"]) };
        assert_eq!(check(&surface).unwrap_err().code(), "plugin_export_missing");
    }

    #[test]
    fn what_is_no_component_is_named_as_such() {
        for bytes in [b"".as_slice(), b"hello", b"\0asm\x01\0\0\0"] {
            assert_eq!(surface(bytes).unwrap_err().code(), "plugin_not_a_component");
        }
    }
}
