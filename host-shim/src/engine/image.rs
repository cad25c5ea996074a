//! Compiled components, and the cache of their images.
//!
//! Owns the one `unsafe` of the engine: loading an image runs the machine code in it. Only images that this module
//! wrote are loaded: from a folder that belongs to this user and that nobody else may write, under a name made of the
//! component's digest and the compatibility of this very wasmtime.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use wasmtime::Engine;
use wasmtime::component::Component;

use super::error::PinError;
use super::pin::Digest;

/// A component, compiled for this engine.
#[derive(Clone)]
pub(super) struct Image(Component);

impl Image {
    /// The compiled component.
    pub(super) fn component(&self) -> &Component {
        &self.0
    }

    /// Takes the image from the cache, or compiles the component and puts its image there. A cache that cannot be
    /// used costs time and nothing else.
    pub(super) fn obtain(
        engine: &Engine,
        digest: &Digest,
        bytes: &[u8],
        cache: Option<&Cache>,
    ) -> Result<Self, PinError> {
        let Some(cache) = cache else { return Self::compile(engine, bytes) };
        let file = cache.file(engine, digest);
        if let Some(image) = cache.load(engine, &file) {
            return Ok(image);
        }
        let image = Self::compile(engine, bytes)?;
        if let Err(error) = cache.store(&file, &image) {
            tracing::warn!(%error, "the compiled component could not be cached; the next start compiles it again");
        }
        Ok(image)
    }

    fn compile(engine: &Engine, bytes: &[u8]) -> Result<Self, PinError> {
        Component::from_binary(engine, bytes).map(Self).map_err(|e| PinError::Compile(e.to_string()))
    }
}

/// A folder of images.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// Uses a folder, making it where it is not there. `None` where it is not private to this user: then an image in
    /// it could be anybody's.
    #[must_use]
    pub fn open(folder: &Path) -> Option<Self> {
        if let Err(error) = make_private(folder) {
            tracing::warn!(%error, "no cache for compiled components");
            return None;
        }
        if is_private(folder) {
            Some(Self { folder: folder.to_owned() })
        } else {
            tracing::warn!("the cache for compiled components is not used: others may write to its folder");
            None
        }
    }

    fn file(&self, engine: &Engine, digest: &Digest) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        self.folder.join(format!("{}-{:016x}.image", digest.hex(), hasher.finish()))
    }

    #[expect(unsafe_code, reason = "the image was written by `store`")]
    fn load(&self, engine: &Engine, file: &Path) -> Option<Image> {
        if !file.exists() || !is_private(file) || !is_private(&self.folder) {
            return None;
        }
        // SAFETY: the file lies in a folder that only this user may write and was put there by `store`, whole, by a
        // rename; it is never changed afterwards. wasmtime itself refuses images of other versions or settings.
        match unsafe { Component::deserialize_file(engine, file) } {
            Ok(component) => Some(Image(component)),
            Err(error) => {
                tracing::info!(%error, "a cached image is not for this wasmtime; compiling anew");
                None
            }
        }
    }

    /// Writes under another name first, so that a half image is never found.
    fn store(&self, file: &Path, image: &Image) -> std::io::Result<()> {
        let bytes = image.0.serialize().map_err(std::io::Error::other)?;
        // A name of its own for each writer, of which there may be several in one process and in others.
        let temporary = file.with_extension(format!("{}.part", uuid::Uuid::new_v4().simple()));
        let mut out = fs::File::create_new(&temporary)?;
        out.write_all(&bytes)?;
        out.sync_all()?;
        let mut permissions = out.metadata()?.permissions();
        restrict(&mut permissions);
        fs::set_permissions(&temporary, permissions)?;
        fs::rename(&temporary, file)
    }
}

#[cfg(unix)]
fn make_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    if folder.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make_private(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)
}

/// Owned by the user of this process and written by nobody else.
#[cfg(unix)]
fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    // The process's own folder in /proc belongs to the user it runs as.
    let own = fs::metadata("/proc/self").map(|m| m.uid());
    match (fs::symlink_metadata(path), own) {
        (Ok(meta), Ok(uid)) => meta.uid() == uid && meta.mode() & 0o022 == 0 && !meta.file_type().is_symlink(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_private(_path: &Path) -> bool {
    false
}

#[cfg(unix)]
fn restrict(permissions: &mut fs::Permissions) {
    use std::os::unix::fs::PermissionsExt;
    permissions.set_mode(0o400);
}

#[cfg(not(unix))]
fn restrict(permissions: &mut fs::Permissions) {
    permissions.set_readonly(true);
}
