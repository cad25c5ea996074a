//! The vault: secrets sealed for the store and opened for a run.
//!
//! Owns the keys and the cipher: ChaCha20-Poly1305 (RFC 8439) with a random nonce, bound to the instance by its
//! associated data, so that a row moved to another instance does not open. Knows several keys so that the current one
//! can be changed while runs go on. Stores nothing; shows no key and no secret.

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::hmac;

use crate::store::model::{Sealed, StoredSecret};
use crate::store::{Store, StoreError};

/// Bytes of a key's text at least (Quivr's bound). It should be random: `openssl rand -base64 32`.
pub const MIN_KEY_BYTES: usize = 32;

/// Bytes of a key file at most.
pub const MAX_KEY_BYTES: usize = 4_096;

/// Bytes of a secret: a token of a provider has some kilobytes at most.
pub const MAX_SECRET_BYTES: usize = 16 * 1_024;

/// Secrets that are read at once when they are sealed anew.
const BATCH: u32 = 64;

/// Why a secret was not sealed or opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// Text of a key that is none.
    #[error("a credential key must have 32 to 4096 bytes; make one with: openssl rand -base64 32")]
    Key,
    /// No key at hand sealed it.
    #[error("the secret was sealed with a key that is not configured; add that key to old_credential_key_files")]
    UnknownKey,
    /// The ciphertext was changed or belongs elsewhere.
    #[error("the stored secret cannot be opened; deposit it again")]
    Unreadable,
    /// No randomness, or a secret beyond its bound.
    #[error("the secret cannot be sealed")]
    Seal,
}

/// A key with its name.
struct Key {
    id: String,
    cipher: LessSafeKey,
    mac: hmac::Key,
}

/// Length of what is derived, for ring's interface.
struct Length(usize);

impl ring::hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl Key {
    fn new(text: &[u8]) -> Result<Self, VaultError> {
        let text = text.trim_ascii();
        if !(MIN_KEY_BYTES..=MAX_KEY_BYTES).contains(&text.len()) {
            return Err(VaultError::Key);
        }
        // One text, three uses, so three derived keys (RFC 5869); the name is derived too and tells nothing.
        let root = Salt::new(HKDF_SHA256, b"host-shim credentials").extract(text);
        let derive = |info: &'static [u8], length: usize| -> Result<Vec<u8>, VaultError> {
            let mut bytes = vec![0; length];
            let info = [info];
            let derived = root.expand(&info, Length(length)).map_err(|_| VaultError::Key)?;
            derived.fill(&mut bytes).map_err(|_| VaultError::Key)?;
            Ok(bytes)
        };
        let cipher = UnboundKey::new(&CHACHA20_POLY1305, &derive(b"seal", 32)?).map_err(|_| VaultError::Key)?;
        let id = derive(b"name", 8)?.iter().map(|b| format!("{b:02x}")).collect();
        let mac = hmac::Key::new(hmac::HMAC_SHA256, &derive(b"fingerprint", 32)?);
        Ok(Self { id, cipher: LessSafeKey::new(cipher), mac })
    }
}

/// The keys of a host: one that seals, and older ones that only open.
pub struct Vault {
    current: Key,
    old: Vec<Key>,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault").field("current", &self.current.id).finish_non_exhaustive()
    }
}

impl Vault {
    /// A vault from the texts of its keys.
    ///
    /// # Errors
    /// [`VaultError::Key`].
    pub fn new(current: &[u8], old: &[Vec<u8>]) -> Result<Self, VaultError> {
        Ok(Self { current: Key::new(current)?, old: old.iter().map(|text| Key::new(text)).collect::<Result<_, _>>()? })
    }

    /// Name of the key that seals.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.current.id
    }

    /// Seals the secret of an instance.
    ///
    /// # Errors
    /// [`VaultError::Seal`].
    pub fn seal(&self, connector_id: &str, secret: &[u8]) -> Result<Sealed, VaultError> {
        if secret.len() > MAX_SECRET_BYTES {
            return Err(VaultError::Seal);
        }
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| VaultError::Seal)?;
        let mut sealed = secret.to_vec();
        self.current
            .cipher
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(connector_id.as_bytes()),
                &mut sealed,
            )
            .map_err(|_| VaultError::Seal)?;
        Ok(Sealed { bytes: [&nonce, sealed.as_slice()].concat(), key_id: self.current.id.clone() })
    }

    /// Opens the secret of an instance.
    ///
    /// # Errors
    /// [`VaultError::UnknownKey`], [`VaultError::Unreadable`].
    pub fn open(&self, connector_id: &str, sealed: &Sealed) -> Result<Vec<u8>, VaultError> {
        let key = std::iter::once(&self.current)
            .chain(&self.old)
            .find(|key| key.id == sealed.key_id)
            .ok_or(VaultError::UnknownKey)?;
        let (nonce, text) = sealed.bytes.split_at_checked(NONCE_LEN).ok_or(VaultError::Unreadable)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| VaultError::Unreadable)?;
        let mut text = text.to_vec();
        let length = key
            .cipher
            .open_in_place(nonce, Aad::from(connector_id.as_bytes()), &mut text)
            .map_err(|_| VaultError::Unreadable)?
            .len();
        text.truncate(length);
        Ok(text)
    }

    /// A fingerprint that tells equal requests with a secret apart from others and cannot be guessed from the store.
    #[must_use]
    pub fn fingerprint(&self, bytes: &[u8]) -> [u8; 32] {
        let mut fingerprint = [0; 32];
        fingerprint.iter_mut().zip(hmac::sign(&self.current.mac, bytes).as_ref()).for_each(|(to, from)| *to = *from);
        fingerprint
    }

    /// Seals everything in a store anew that another key sealed. It may be cut off and called again, also while a
    /// service uses the store. Returns how many were sealed anew and the instances whose secret does not open.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn reseal(&self, store: &dyn Store) -> Result<(u32, Vec<String>), StoreError> {
        let (mut done, mut unreadable, mut after) = (0, Vec::new(), 0);
        loop {
            let batch = store.secrets_not_under(&self.current.id, after, BATCH)?;
            let Some(last) = batch.last() else { return Ok((done, unreadable)) };
            after = last.seq;
            for old in &batch {
                match self.sealed_anew(old) {
                    Ok(new) => done += u32::from(store.reseal(old, &new)?),
                    Err(_) => unreadable.push(old.connector_id.clone()),
                }
            }
        }
    }

    fn sealed_anew(&self, old: &StoredSecret) -> Result<Sealed, VaultError> {
        self.seal(&old.connector_id, &self.open(&old.connector_id, &old.sealed)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault(text: &str) -> Vault {
        Vault::new(text.as_bytes(), &[]).unwrap()
    }

    const FIRST: &str = "first first first first first first";
    const SECOND: &str = "second second second second second";

    #[test]
    fn a_secret_opens_for_its_instance_and_its_key_alone() {
        let first = vault(FIRST);
        let sealed = first.seal("con_1", b"hunter2").unwrap();
        assert_eq!(first.open("con_1", &sealed).unwrap(), b"hunter2");
        assert_eq!(first.open("con_2", &sealed), Err(VaultError::Unreadable));
        assert_eq!(vault(SECOND).open("con_1", &sealed), Err(VaultError::UnknownKey));
        let rotated = Vault::new(SECOND.as_bytes(), &[FIRST.as_bytes().to_vec()]).unwrap();
        assert_eq!(rotated.open("con_1", &sealed).unwrap(), b"hunter2");
        assert_ne!(rotated.key_id(), first.key_id());
        for n in 0..sealed.bytes.len() {
            let mut changed = sealed.clone();
            changed.bytes[n] ^= 1;
            assert_eq!(first.open("con_1", &changed), Err(VaultError::Unreadable), "byte {n}");
        }
        let short = Sealed { bytes: vec![0; 5], ..sealed.clone() };
        assert_eq!(first.open("con_1", &short), Err(VaultError::Unreadable));
        assert_ne!(first.seal("con_1", b"hunter2").unwrap().bytes, sealed.bytes, "the nonce is random");
    }

    #[test]
    fn a_key_has_a_length_and_shows_itself_to_nobody() {
        assert!(matches!(Vault::new(b"short", &[]), Err(VaultError::Key)));
        assert!(matches!(Vault::new(&[b'x'; MAX_KEY_BYTES + 1], &[]), Err(VaultError::Key)));
        // A file ends with a line feed that is no part of the key.
        assert_eq!(vault(&format!("{FIRST}\n")).key_id(), vault(FIRST).key_id());
        let shown = format!("{:?}", vault(FIRST));
        assert!(!shown.contains("first"), "{shown}");
        assert_eq!(vault(FIRST).seal("c", &[0; MAX_SECRET_BYTES + 1]), Err(VaultError::Seal));
    }

    #[test]
    fn fingerprints_tell_requests_apart_by_key() {
        let first = vault(FIRST);
        assert_eq!(first.fingerprint(b"a"), first.fingerprint(b"a"));
        assert_ne!(first.fingerprint(b"a"), first.fingerprint(b"b"));
        assert_ne!(first.fingerprint(b"a"), vault(SECOND).fingerprint(b"a"));
    }
}
