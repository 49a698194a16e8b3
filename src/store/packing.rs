//! How stores write a record or a content as bytes: one mark, then the text as it is or compressed. It does not know
//! where the bytes go; every store writes the same, so that they can be copied between stores as they are.

use std::cell::RefCell;
use std::io::Read;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::StoreError;

/// Texts longer than this are compressed, in bytes.
pub const COMPRESS_OVER: usize = 1024;

/// The longest text that is packed or unpacked, in bytes. Bounds what a damaged or hostile row can make the host allocate.
pub const TEXT_LIMIT: usize = 256 * 1024 * 1024;

/// The deepest nesting of a record's JSON. The parser refuses 128; what could not be read again is not written.
pub const DEPTH_LIMIT: usize = 120;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
/// The fastest of the regular levels: the end of every round waits for it.
const ZSTD_LEVEL: i32 = 1;

thread_local! {
    /// Made once a thread, not once a text: a round compresses many small ones.
    static COMPRESSOR: RefCell<zstd::zstd_safe::CCtx<'static>> = RefCell::new(zstd::zstd_safe::CCtx::create());
}

/// The address of a content: SHA-256 in lower-case hexadecimal, 64 characters.
pub fn content_hash(content: &str) -> String {
    hexadecimal(&Sha256::digest(content.as_bytes()))
}

/// Bytes in lower-case hexadecimal.
pub fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// The 32 bytes behind a content's address; `None` unless it is 64 lower-case hexadecimal digits.
pub fn hash_bytes(hash: &str) -> Option<[u8; 32]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let text: &[u8; 64] = hash.as_bytes().try_into().ok()?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.as_chunks::<2>().0) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// A text as it is stored.
///
/// # Errors
/// `Failed` if it is longer than [`TEXT_LIMIT`].
pub fn pack(text: &str) -> Result<Vec<u8>, StoreError> {
    pack_bytes(text.as_bytes())
}

/// The text that [`pack`] wrote; `what` names it in the error.
///
/// # Errors
/// `Corrupt` if the bytes are not what `pack` writes.
pub fn unpack(what: &'static str, packed: &[u8]) -> Result<String, StoreError> {
    String::from_utf8(unpack_bytes(what, packed)?).map_err(|error| corrupt(what, error))
}

/// A record as it is stored.
///
/// # Errors
/// `Failed` if its JSON is longer than [`TEXT_LIMIT`] or deeper than [`DEPTH_LIMIT`].
pub fn pack_record<T: Serialize>(what: &'static str, record: &T) -> Result<Vec<u8>, StoreError> {
    let json = serde_json::to_vec(record).map_err(|error| StoreError::Failed(format!("a {what}: {error}")))?;
    if json_depth(&json) > DEPTH_LIMIT {
        return Err(StoreError::Failed(format!("a {what} is nested deeper than {DEPTH_LIMIT} levels")));
    }
    pack_bytes(&json)
}

/// The record that [`pack_record`] wrote.
///
/// # Errors
/// `Corrupt` if the bytes are not what `pack_record` writes.
pub fn unpack_record<T: DeserializeOwned>(what: &'static str, packed: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(&unpack_bytes(what, packed)?).map_err(|error| corrupt(what, error))
}

/// A stored thing that cannot be read.
pub(super) fn corrupt(what: &'static str, message: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt { what, message: message.to_string() }
}

fn pack_bytes(text: &[u8]) -> Result<Vec<u8>, StoreError> {
    if text.len() > TEXT_LIMIT {
        return Err(StoreError::Failed(format!("a text of {} bytes is over the limit: {TEXT_LIMIT}", text.len())));
    }
    if text.len() > COMPRESS_OVER {
        let mut packed = vec![0; 1 + zstd::zstd_safe::compress_bound(text.len())];
        let written = COMPRESSOR
            .with_borrow_mut(|compressor| compressor.compress(&mut packed[1..], text, ZSTD_LEVEL))
            .map_err(|code| {
                let reason = zstd::zstd_safe::get_error_name(code);
                StoreError::Failed(format!("a text cannot be compressed: {reason}"))
            })?;
        packed.truncate(1 + written);
        packed[0] = ZSTD;
        return Ok(packed);
    }
    let mut packed = Vec::with_capacity(1 + text.len());
    packed.push(PLAIN);
    packed.extend_from_slice(text);
    Ok(packed)
}

fn unpack_bytes(what: &'static str, packed: &[u8]) -> Result<Vec<u8>, StoreError> {
    match packed.split_first() {
        Some((&PLAIN, text)) => Ok(text.to_vec()),
        Some((&ZSTD, compressed)) => {
            let mut text = Vec::new();
            // Read piece by piece: the length that the frame claims is not trusted.
            let decoder = zstd::stream::read::Decoder::with_buffer(compressed).map_err(|error| corrupt(what, error))?;
            decoder.take(TEXT_LIMIT as u64 + 1).read_to_end(&mut text).map_err(|error| corrupt(what, error))?;
            if text.len() > TEXT_LIMIT {
                return Err(corrupt(what, format!("it is longer than {TEXT_LIMIT} bytes")));
            }
            Ok(text)
        }
        Some((mark, _)) => Err(corrupt(what, format!("unknown mark {mark}"))),
        None => Err(corrupt(what, "it is empty")),
    }
}

/// The deepest nesting of valid JSON text.
fn json_depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_as_they_went_in() {
        for text in ["", "a", "nul \0 and ünïcode 🙂", &"x".repeat(COMPRESS_OVER), &"é".repeat(COMPRESS_OVER)] {
            assert_eq!(unpack("text", &pack(text).unwrap()).unwrap(), text);
        }
    }

    #[test]
    fn only_long_texts_are_compressed() {
        assert_eq!(pack(&"x".repeat(COMPRESS_OVER)).unwrap()[0], PLAIN);
        let packed = pack(&"x".repeat(COMPRESS_OVER + 1)).unwrap();
        assert_eq!((packed[0], packed.len() < 64), (ZSTD, true));
    }

    #[test]
    fn damaged_bytes_are_corrupt() {
        let mut flipped = pack(&"x".repeat(5_000)).unwrap();
        flipped.truncate(8);
        for bytes in [&[][..], &[7, 65], &[PLAIN, 0xff], &[ZSTD, 1, 2, 3], &flipped] {
            assert!(matches!(unpack("text", bytes), Err(StoreError::Corrupt { what: "text", .. })), "{bytes:?}");
        }
    }

    #[test]
    fn a_record_too_deep_to_be_read_again_is_not_written() {
        let nested = |levels| (0..levels).fold(serde_json::json!("[[["), |inner, _| serde_json::json!([inner]));
        let packed = pack_record("call", &nested(DEPTH_LIMIT)).unwrap();
        assert_eq!(unpack_record::<serde_json::Value>("call", &packed).unwrap(), nested(DEPTH_LIMIT));
        assert!(matches!(pack_record("call", &nested(DEPTH_LIMIT + 1)), Err(StoreError::Failed(_))));
    }

    #[test]
    fn a_hash_is_the_text_of_its_bytes() {
        let hash = content_hash("abc");
        assert_eq!(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hexadecimal(&hash_bytes(&hash).unwrap()), hash);
        assert_eq!(hash_bytes(&hash.to_uppercase()), None);
        assert_eq!(hash_bytes("abc"), None);
    }
}
