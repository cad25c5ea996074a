//! Content codings: gzip, deflate, brotli and zstd, decoded while they arrive and bounded.
//!
//! Owns the decoders and the two bounds on decoded bytes: their number, and how many may come of each byte received.
//! Both are held before a byte past them is kept. What was not asked for is refused (RFC 9110, section 8.4).

use std::io::Write;

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::zstd::Zstd;

/// What requests say they accept.
pub const ACCEPT_ENCODING: &str = "gzip, br, zstd, deflate";

/// Decoded bytes for each byte received. Feeds shrink to a tenth, very repetitive ones to a fiftieth; what unpacks to
/// more was made to.
pub const MAX_RATIO: usize = 200;

/// Decoded bytes below which the ratio does not count: a small body does no harm, however it was made.
pub const RATIO_FREE_BYTES: usize = 1_024 * 1_024;

/// Why a body cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CodingError {
    /// A coding that was not asked for, or more than one on top of another.
    #[error("a content coding that was not asked for")]
    Unsupported,
    /// The decoded body passes its bound.
    #[error("the decoded body passes its bound")]
    TooLarge,
    /// More comes out of the coded bytes than comes of any feed.
    #[error("the coded body unpacks to more than {MAX_RATIO} times its size")]
    Bomb,
    /// The coded bytes are damaged or end too early.
    #[error("the coded body is damaged or ends too early")]
    Damaged,
}

/// Keeps bytes up to its bounds.
#[derive(Debug, Default)]
struct Bounded {
    bytes: Vec<u8>,
    /// Bytes that are kept at most.
    bound: usize,
    /// Bytes that the ratio allows so far.
    ratio_bound: usize,
    passed: Option<CodingError>,
}

impl Write for Bounded {
    fn write(&mut self, chunk: &[u8]) -> std::io::Result<usize> {
        let length = self.bytes.len() + chunk.len();
        if length > self.bound.min(self.ratio_bound) {
            self.passed = Some(if length > self.bound { CodingError::TooLarge } else { CodingError::Bomb });
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
    Zstd(Box<Zstd<Bounded>>),
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
        let sink = Bounded { bound, ratio_bound: RATIO_FREE_BYTES, ..Bounded::default() };
        let coding = content_encoding.unwrap_or("").trim().to_ascii_lowercase();
        let coder = match coding.as_str() {
            "" | "identity" => Coder::Identity(sink),
            "gzip" | "x-gzip" => Coder::Gzip(MultiGzDecoder::new(sink)),
            "deflate" => Coder::DeflateUnknown(Vec::new(), sink),
            "br" => Coder::BrotliUnknown(sink),
            "zstd" => Coder::Zstd(Box::new(Zstd::new(sink))),
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
        let ratio_bound = self.received.saturating_mul(MAX_RATIO).max(RATIO_FREE_BYTES);
        if let Some(sink) = self.sink() {
            sink.ratio_bound = ratio_bound;
        }
        let written = match &mut self.coder {
            Coder::Identity(w) => w.write_all(chunk).is_ok(),
            Coder::Gzip(w) => w.write_all(chunk).is_ok(),
            Coder::Zlib(w) => w.write_all(chunk).is_ok(),
            Coder::Deflate(w) => w.write_all(chunk).is_ok(),
            Coder::Brotli(w) => w.write_all(chunk).is_ok(),
            Coder::Zstd(w) => w.push(chunk).is_ok(),
            Coder::DeflateUnknown(..) | Coder::BrotliUnknown(_) | Coder::Failed => return Err(CodingError::Damaged),
        };
        if written { Ok(()) } else { Err(self.reason()) }
    }

    fn sink(&mut self) -> Option<&mut Bounded> {
        match &mut self.coder {
            Coder::Identity(w) => Some(w),
            Coder::Gzip(w) => Some(w.get_mut()),
            Coder::Zlib(w) => Some(w.get_mut()),
            Coder::Deflate(w) => Some(w.get_mut()),
            Coder::Brotli(w) => Some(w.get_mut()),
            Coder::Zstd(w) => Some(w.get_mut()),
            Coder::DeflateUnknown(..) | Coder::BrotliUnknown(_) | Coder::Failed => None,
        }
    }

    fn reason(&mut self) -> CodingError {
        self.sink().and_then(|s| s.passed).unwrap_or(CodingError::Damaged)
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
            Coder::Gzip(mut w) => std::mem::take(w.get_mut()),
            Coder::Zlib(w) => w.finish().map_err(|_| CodingError::Damaged)?,
            Coder::Deflate(w) => w.finish().map_err(|_| CodingError::Damaged)?,
            Coder::Brotli(w) => w.into_inner().map_err(|_| CodingError::Damaged)?,
            Coder::Zstd(w) => w.finish().map_err(|_| CodingError::Damaged)?,
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
            "zstd" => {
                out = ruzstd::encoding::compress_to_vec(body, ruzstd::encoding::CompressionLevel::Fastest);
                Ok(())
            }
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
            (Some("zstd"), "zstd"),
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
        for form in ["", "gzip", "zlib", "deflate", "br", "zstd"] {
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
        for (name, form) in [("gzip", "gzip"), ("deflate", "zlib"), ("br", "br"), ("zstd", "zstd")] {
            let bytes = coded(form, &body);
            let short = &bytes[..bytes.len() - 5];
            assert_eq!(decode(Some(name), short, 64, 1 << 20), Err(CodingError::Damaged), "{name} short");
            assert_eq!(decode(Some(name), b"not compressed at all", 64, 1 << 20), Err(CodingError::Damaged), "{name}");
        }
        assert_eq!(decode(Some("gzip"), b"", 64, 10), Ok(Vec::new()));
    }

    /// 32 MiB of one byte: gzip makes a thousandth of it, brotli and zstd far less.
    #[test]
    fn a_bomb_is_refused_long_before_it_is_unpacked() {
        let body = vec![0_u8; 32 * 1_024 * 1_024];
        for (name, form) in
            [("gzip", "gzip"), ("deflate", "zlib"), ("deflate", "deflate"), ("br", "br"), ("zstd", "zstd")]
        {
            let bytes = coded(form, &body);
            assert!(bytes.len() * MAX_RATIO < body.len(), "{form}");
            assert_eq!(decode(Some(name), &bytes, 1_024, body.len()), Err(CodingError::Bomb), "{form}");
        }
        // What is as repetitive and small is no bomb.
        let small = vec![0_u8; RATIO_FREE_BYTES];
        assert!(decode(Some("gzip"), &coded("gzip", &small), 1_024, small.len()).is_ok());
    }

    /// Frames by RFC 8878, section 3.1, written by hand: magic number, descriptor, window, blocks.
    #[test]
    fn zstd_frames_are_read_by_the_book() {
        let magic = [0x28, 0xB5, 0x2F, 0xFD];
        let skippable = [0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 9, 9, 9];
        // Single segment, content size 1 byte: one raw block of 5 bytes, the last.
        let raw = [&magic[..], &[0x20, 5], &[5 << 3 | 1, 0, 0], b"hello"].concat();
        // One repeated byte, 4 times.
        let repeated = [&magic[..], &[0x20, 4], &[4 << 3 | 2 | 1, 0, 0], b"x"].concat();
        let all = [&skippable[..], &raw, &skippable, &repeated].concat();
        for step in 1..all.len() {
            assert_eq!(decode(Some("zstd"), &all, step, 100), Ok(b"helloxxxx".to_vec()), "{step}");
        }
        // A window of 16 MiB (exponent 14) is past what the content coding allows; one of 8 MiB is not.
        let window = |exponent: u8| [&magic[..], &[0, exponent << 3], &[5 << 3 | 1, 0, 0], b"hello"].concat();
        assert_eq!(decode(Some("zstd"), &window(13), 100, 100), Ok(b"hello".to_vec()));
        assert_eq!(decode(Some("zstd"), &window(14), 100, 100), Err(CodingError::Damaged));
        // A checksum that is wrong, a block past its bound, a stream that stops inside a frame.
        let checked = [&magic[..], &[0x24, 5], &[5 << 3 | 1, 0, 0], b"hello", &[1, 2, 3, 4]].concat();
        assert_eq!(decode(Some("zstd"), &checked, 3, 100), Err(CodingError::Damaged));
        let long = [&magic[..], &[0, 13 << 3], &[0xF9, 0xFF, 0xFF], &[0; 32]].concat();
        assert_eq!(decode(Some("zstd"), &long, 100, 100), Err(CodingError::Damaged));
        assert_eq!(decode(Some("zstd"), &all[..all.len() - 1], 100, 100), Err(CodingError::Damaged));
    }

    #[test]
    fn a_large_window_brotli_stream_is_refused_before_it_reserves_anything() {
        assert_eq!(decode(Some("br"), &[0x11, 0x1E, 0x00, 0x00], 4, 1 << 20), Err(CodingError::Damaged));
    }

    #[test]
    fn other_codings_are_refused() {
        for coding in ["compress", "gzip, br", "gzip, gzip, gzip", "dcb", "aes128gcm"] {
            assert_eq!(Decoder::new(Some(coding), 10).map(|_| ()), Err(CodingError::Unsupported));
        }
    }
}
