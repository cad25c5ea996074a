//! zstd (RFC 8878), pushed in pieces of any size.
//!
//! Owns the cutting of the stream into frames and blocks, since the decoder wants whole ones. A frame's window is held
//! to 8 MiB, the most that the content coding allows (RFC 9659), so that a header alone reserves nothing larger.

use std::io::Write;

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The largest window of the content coding (RFC 9659, section 3).
const MAX_WINDOW_BYTES: u64 = 8 * 1_024 * 1_024;

/// The longest frame header: magic number, descriptor, window, dictionary, content size (RFC 8878, section 3.1.1.1).
const MAX_HEADER_BYTES: usize = 18;

/// The largest block (RFC 8878, section 3.1.1.2.4).
const MAX_BLOCK_BYTES: usize = 128 * 1_024;

/// Bytes of a block header.
const BLOCK_HEADER: usize = 3;

/// Bytes of a frame's checksum.
const CHECKSUM: usize = 4;

/// Where the stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before a frame.
    Frame,
    /// Inside a skippable frame: so many bytes are left of it.
    Skip(usize),
    /// Before a block; the frame ends with a checksum or not.
    Block { checksum: bool },
}

/// A stream that is being decoded into a writer.
pub(super) struct Zstd<W> {
    sink: W,
    decoder: FrameDecoder,
    pending: Vec<u8>,
    at: At,
}

/// The stream is damaged, or the writer takes no more.
#[derive(Debug)]
pub(super) struct Stopped;

impl<W: Write> Zstd<W> {
    pub(super) fn new(sink: W) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW_BYTES);
        Self { sink, decoder, pending: Vec::new(), at: At::Frame }
    }

    pub(super) fn get_mut(&mut self) -> &mut W {
        &mut self.sink
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), Stopped> {
        self.pending.extend_from_slice(chunk);
        self.advance(false)
    }

    /// Ends the stream; it must stand between frames.
    pub(super) fn finish(mut self) -> Result<W, Stopped> {
        self.advance(true)?;
        if self.at == At::Frame && self.pending.is_empty() { Ok(self.sink) } else { Err(Stopped) }
    }

    fn advance(&mut self, at_end: bool) -> Result<(), Stopped> {
        let pending = std::mem::take(&mut self.pending);
        let mut rest = pending.as_slice();
        while !rest.is_empty() {
            let before = rest.len();
            match self.at {
                At::Frame if rest.len() < MAX_HEADER_BYTES && !at_end => break,
                At::Frame => self.frame(&mut rest)?,
                At::Skip(left) => {
                    let now = left.min(rest.len());
                    rest = rest.get(now..).unwrap_or(&[]);
                    self.at = if now == left { At::Frame } else { At::Skip(left - now) };
                }
                At::Block { checksum } => self.block(&mut rest, checksum)?,
            }
            if rest.len() == before {
                break;
            }
        }
        self.pending = rest.to_vec();
        Ok(())
    }

    /// Reads a frame's header.
    fn frame(&mut self, rest: &mut &[u8]) -> Result<(), Stopped> {
        // Bit 2 of the descriptor, the byte behind the magic number (RFC 8878, section 3.1.1.1.1).
        let checksum = rest.get(4).is_some_and(|descriptor| descriptor & 4 != 0);
        self.at = match self.decoder.reset(&mut *rest) {
            Ok(()) => At::Block { checksum },
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                At::Skip(usize::try_from(length).map_err(|_| Stopped)?)
            }
            Err(_) => return Err(Stopped),
        };
        if self.at == At::Skip(0) {
            self.at = At::Frame;
        }
        Ok(())
    }

    /// Decodes one block where it is whole.
    fn block(&mut self, rest: &mut &[u8], checksum: bool) -> Result<(), Stopped> {
        let Some(&[a, b, c]) = rest.first_chunk::<BLOCK_HEADER>() else { return Ok(()) };
        // Last block, type, size (RFC 8878, section 3.1.1.2); a repeated byte is one byte whatever the size says.
        let header = u32::from_le_bytes([a, b, c, 0]);
        let size = usize::try_from(header >> 3).map_err(|_| Stopped)?;
        if size > MAX_BLOCK_BYTES {
            return Err(Stopped);
        }
        let content = if (header >> 1) & 3 == 1 { 1 } else { size };
        let last = header & 1 == 1;
        let tail = if last && checksum { CHECKSUM } else { 0 };
        if rest.len() < BLOCK_HEADER + content + tail {
            return Ok(());
        }
        let finished =
            self.decoder.decode_blocks(&mut *rest, BlockDecodingStrategy::UptoBlocks(1)).map_err(|_| Stopped)?;
        self.decoder.collect_to_writer(&mut self.sink).map_err(|_| Stopped)?;
        if finished {
            let stated = self.decoder.get_checksum_from_data();
            if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
                return Err(Stopped);
            }
            self.at = At::Frame;
        }
        Ok(())
    }
}
