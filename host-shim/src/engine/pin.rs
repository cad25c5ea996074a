//! A pin: which component, by which digest, with which configuration.
//!
//! Owns the reading of the file under a bound and the comparison of the digest, which comes before anything looks into
//! the bytes.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::error::PinError;

/// Bytes of a component file. Ours has less than 4 MB.
pub const MAX_COMPONENT_BYTES: u64 = 64 * 1_024 * 1_024;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Reads 64 hexadecimal digits, with or without `sha256:`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:").unwrap_or(text);
        if hex.len() != 64 || !hex.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// A digest that was stored.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// 64 hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A component to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Where it lies.
    pub path: PathBuf,
    /// What it must hash to; absent only on the command line, where a person names the file.
    pub sha256: Option<Digest>,
    /// Configuration for the component, a JSON object.
    pub configuration: String,
}

/// Reads the file of a pin, bounded, and holds it to its digest.
///
/// # Errors
/// Where it cannot be read, is too large or is another file than the pinned one.
pub fn read(pin: &Pin) -> Result<(Digest, Vec<u8>), PinError> {
    let bytes = read_bounded(&pin.path)?;
    let digest = Digest::of(&bytes);
    match pin.sha256 {
        Some(pinned) if pinned != digest => {
            Err(PinError::Digest { path: pin.path.display().to_string(), pinned: pinned.hex(), found: digest.hex() })
        }
        _ => Ok((digest, bytes)),
    }
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, PinError> {
    let failed = |source| PinError::Read { path: path.display().to_string(), source };
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(MAX_COMPONENT_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_COMPONENT_BYTES {
        return Err(PinError::TooLarge { path: path.display().to_string(), limit: MAX_COMPONENT_BYTES });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of "abc" from FIPS 180-4's examples.
    #[test]
    fn digests_are_read_and_written() {
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let digest = Digest::of(b"abc");
        assert_eq!(digest.to_string(), format!("sha256:{hex}"));
        assert_eq!(Digest::parse(hex), Some(digest));
        assert_eq!(Digest::parse(&format!("sha256:{}", hex.to_uppercase())), Some(digest));
        for bad in
            ["", "sha256:", hex.get(1..).unwrap(), "zz7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"]
        {
            assert_eq!(Digest::parse(bad), None);
        }
    }
}
