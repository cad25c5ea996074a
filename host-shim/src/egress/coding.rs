//! Content codings: gzip, deflate and brotli, decoded while they arrive and bounded.
//!
//! Owns the decoders and the bound on decoded bytes, which is held before a byte past it is kept. What was not asked
//! for is refused (RFC 9110, section 8.4).

use std::io::Write;

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// What requests say they accept.
pub const ACCEPT_ENCODING: &str = "gzip, br, deflate";

/// Why a body cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CodingError {
    /// A coding that was not asked for, or more than one on top of another.
    #[error("a content coding that was not asked for")]
    Unsupported,
    /// The decoded body passes its bound.
    #[error("the decoded body passes its bound")]
    TooLarge,
    /// The coded bytes are damaged or end too early.
    #[error("the coded body is damaged or ends too early")]
    Damaged,
}

/// Keeps bytes up to a bound.
#[derive(Debug)]
struct Bounded {
    bytes: Vec<u8>,
    bound: usize,
    passed: bool,
}

impl Write for Bounded {
    fn write(&mut self, chunk: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + chunk.len() > self.bound {
            self.passed = true;
            return Err(std::io::Error::other("past the bound"));
        }
        self.bytes.extend_from_slice(chunk);
        Ok(chunk.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

enum Coder {
    Identity(Bounded),
    Gzip(MultiGzDecoder<Bounded>),
    /// `deflate` means zlib (RFC 9110, section 8.4.1.2), but some servers send it bare; the first bytes tell.
    DeflateUnknown(Vec<u8>, Bounded),
    Zlib(ZlibDecoder<Bounded>),
    Deflate(DeflateDecoder<Bounded>),
    /// The first byte of a brotli stream is still to come.
    BrotliUnknown(Bounded),
    Brotli(Box<brotli_decompressor::DecompressorWriter<Bounded>>),
    Failed,
}

/// A body that is being decoded.
pub struct Decoder {
    coder: Coder,
    received: usize,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("received", &self.received).finish_non_exhaustive()
    }
}

/// Buffer of the brotli decoder.
const BROTLI_BUFFER: usize = 16 * 1_024;

impl Decoder {
    /// A decoder for the value of Content-Encoding.
    ///
    /// # Errors
    /// [`CodingError::Unsupported`] for any other coding and for several at once.
    pub fn new(content_encoding: Option<&str>, bound: usize) -> Result<Self, CodingError> {
        let sink = Bounded { bytes: Vec::new(), bound, passed: false };
        let coding = content_encoding.unwrap_or("").trim().to_ascii_lowercase();
        let coder = match coding.as_str() {
            "" | "identity" => Coder::Identity(sink),
            "gzip" | "x-gzip" => Coder::Gzip(MultiGzDecoder::new(sink)),
            "deflate" => Coder::DeflateUnknown(Vec::new(), sink),
            "br" => Coder::BrotliUnknown(sink),
            _ => return Err(CodingError::Unsupported),
        };
        Ok(Self { coder, received: 0 })
    }

    /// Takes bytes as they come from the wire.
    ///
    /// # Errors
    /// Where the decoded body passes its bound or the coded bytes are damaged.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), CodingError> {
        self.received += chunk.len();
        if let Coder::DeflateUnknown(head, _) = &mut self.coder {
            head.extend_from_slice(chunk);
            if head.len() < 2 {
                return Ok(());
            }
            return self.decide_deflate();
        }
        if let (Coder::BrotliUnknown(_), Some(first)) = (&self.coder, chunk.first()) {
            self.decide_brotli(*first)?;
        }
        self.write(chunk)
    }

    /// The decoder also takes "large window" streams, which are not brotli as HTTP knows it (RFC 7932, section 9.1) and
    /// make it reserve up to a gigabyte at once.
    fn decide_brotli(&mut self, first: u8) -> Result<(), CodingError> {
        let Coder::BrotliUnknown(sink) = std::mem::replace(&mut self.coder, Coder::Failed) else { return Ok(()) };
        if first & 0x7F == 0x11 {
            return Err(CodingError::Damaged);
        }
        self.coder = Coder::Brotli(Box::new(brotli_decompressor::DecompressorWriter::new(sink, BROTLI_BUFFER)));
        Ok(())
    }

    fn decide_deflate(&mut self) -> Result<(), CodingError> {
        let Coder::DeflateUnknown(head, sink) = std::mem::replace(&mut self.coder, Coder::Failed) else {
            return Ok(());
        };
        // A zlib header: method 8, and the two bytes are a multiple of 31 (RFC 1950, section 2.2).
        let zlib = match head.get(..2) {
            Some([cmf, flg]) => cmf & 15 == 8 && (u16::from(*cmf) * 256 + u16::from(*flg)) % 31 == 0,
            _ => false,
        };
        self.coder = if zlib { Coder::Zlib(ZlibDecoder::new(sink)) } else { Coder::Deflate(DeflateDecoder::new(sink)) };
        self.write(&head)
    }

    fn write(&mut self, chunk: &[u8]) -> Result<(), CodingError> {
        let result = match &mut self.coder {
            Coder::Identity(w) => w.write_all(chunk),
            Coder::Gzip(w) => w.write_all(chunk),
            Coder::Zlib(w) => w.write_all(chunk),
            Coder::Deflate(w) => w.write_all(chunk),
            Coder::Brotli(w) => w.write_all(chunk),
            Coder::DeflateUnknown(..) | Coder::BrotliUnknown(_) | Coder::Failed => return Err(CodingError::Damaged),
        };
        result.map_err(|_| self.reason())
    }

    fn reason(&self) -> CodingError {
        let sink = match &self.coder {
            Coder::Identity(w) => Some(w),
            Coder::Gzip(w) => Some(w.get_ref()),
            Coder::Zlib(w) => Some(w.get_ref()),
            Coder::Deflate(w) => Some(w.get_ref()),
            Coder::Brotli(w) => Some(w.get_ref()),
            Coder::DeflateUnknown(..) | Coder::BrotliUnknown(_) | Coder::Failed => None,
        };
        if sink.is_some_and(|s| s.passed) { CodingError::TooLarge } else { CodingError::Damaged }
    }

    /// Bytes received so far, before decoding.
    #[must_use]
    pub fn received(&self) -> usize {
        self.received
    }

    /// The whole decoded body.
    ///
    /// # Errors
    /// Where the coded bytes end too early.
    pub fn finish(mut self) -> Result<Vec<u8>, CodingError> {
        // Many servers announce a coding for an empty body and send nothing.
        if self.received == 0 {
            return Ok(Vec::new());
        }
        if matches!(self.coder, Coder::DeflateUnknown(..)) {
            self.decide_deflate()?;
        }
        if let Coder::Brotli(w) = &mut self.coder
            && w.close().is_err()
        {
            return Err(self.reason());
        }
        let failed = match &mut self.coder {
            Coder::Gzip(w) => w.try_finish().is_err(),
            Coder::Zlib(w) => w.try_finish().is_err(),
            Coder::Deflate(w) => w.try_finish().is_err(),
            _ => false,
        };
        if failed {
            return Err(self.reason());
        }
        let sink = match self.coder {
            Coder::Identity(w) => w,
            Coder::Gzip(mut w) => {
                std::mem::replace(w.get_mut(), Bounded { bytes: Vec::new(), bound: 0, passed: false })
            }
            Coder::Zlib(w) => w.finish().map_err(|_| CodingError::Damaged)?,
            Coder::Deflate(w) => w.finish().map_err(|_| CodingError::Damaged)?,
            Coder::Brotli(w) => w.into_inner().map_err(|_| CodingError::Damaged)?,
            Coder::DeflateUnknown(..) | Coder::BrotliUnknown(_) | Coder::Failed => return Err(CodingError::Damaged),
        };
        Ok(sink.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn coded(coding: &str, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let level = flate2::Compression::default();
        match coding {
            "gzip" => flate2::read::GzEncoder::new(body, level).read_to_end(&mut out).map(|_| ()),
            "zlib" => flate2::read::ZlibEncoder::new(body, level).read_to_end(&mut out).map(|_| ()),
            "deflate" => flate2::read::DeflateEncoder::new(body, level).read_to_end(&mut out).map(|_| ()),
            "br" => std::io::copy(
                &mut std::io::Cursor::new(body),
                &mut brotli::CompressorWriter::new(&mut out, 4_096, 5, 22),
            )
            .map(|_| ()),
            _ => {
                out.extend_from_slice(body);
                Ok(())
            }
        }
        .unwrap();
        out
    }

    fn decode(coding: Option<&str>, bytes: &[u8], step: usize, bound: usize) -> Result<Vec<u8>, CodingError> {
        let mut decoder = Decoder::new(coding, bound)?;
        for chunk in bytes.chunks(step) {
            decoder.push(chunk)?;
        }
        decoder.finish()
    }

    #[test]
    fn every_coding_is_decoded_in_chunks_of_any_size() {
        let body: Vec<u8> = (0..50_000_u32).flat_map(|n| n.to_string().into_bytes()).collect();
        for (name, form) in [
            (None, ""),
            (Some("identity"), ""),
            (Some("gzip"), "gzip"),
            (Some("X-GZIP"), "gzip"),
            (Some("deflate"), "zlib"),
            (Some("deflate"), "deflate"),
            (Some("br"), "br"),
        ] {
            let bytes = coded(form, &body);
            for step in [1, 7, 4_096, bytes.len()] {
                assert_eq!(decode(name, &bytes, step, body.len()).as_ref(), Ok(&body), "{name:?} {form} {step}");
            }
        }
    }

    #[test]
    fn the_bound_counts_decoded_bytes_exactly() {
        let body = vec![b'a'; 1_000_000];
        for form in ["", "gzip", "zlib", "deflate", "br"] {
            let name = match form {
                "" => None,
                "zlib" | "deflate" => Some("deflate"),
                other => Some(other),
            };
            let bytes = coded(form, &body);
            assert!(decode(name, &bytes, 512, body.len()).is_ok(), "{form}");
            assert_eq!(decode(name, &bytes, 512, body.len() - 1), Err(CodingError::TooLarge), "{form}");
        }
    }

    #[test]
    fn a_body_that_ends_too_early_or_is_damaged_is_refused() {
        let body = b"<rss>some text that is compressed</rss>".repeat(50);
        for (name, form) in [("gzip", "gzip"), ("deflate", "zlib"), ("br", "br")] {
            let bytes = coded(form, &body);
            let short = &bytes[..bytes.len() - 5];
            assert_eq!(decode(Some(name), short, 64, 1 << 20), Err(CodingError::Damaged), "{name} short");
            assert_eq!(decode(Some(name), b"not compressed at all", 64, 1 << 20), Err(CodingError::Damaged), "{name}");
        }
        assert_eq!(decode(Some("gzip"), b"", 64, 10), Ok(Vec::new()));
    }

    #[test]
    fn a_large_window_brotli_stream_is_refused_before_it_reserves_anything() {
        assert_eq!(decode(Some("br"), &[0x11, 0x1E, 0x00, 0x00], 4, 1 << 20), Err(CodingError::Damaged));
    }

    #[test]
    fn other_codings_are_refused() {
        for coding in ["compress", "gzip, br", "zstd", "aes128gcm"] {
            assert_eq!(Decoder::new(Some(coding), 10).map(|_| ()), Err(CodingError::Unsupported));
        }
    }
}
