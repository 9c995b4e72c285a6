//! The checksum of a row: the first eight bytes of SHA-256 over the session's id, the number and the bytes.
//!
//! It is made by the node that writes and checked by the one that reads, so a row that was damaged, edited or
//! moved to another place is found, whatever happened to it in the database.

use model::SessionId;
use sha2::{Digest, Sha256};

pub(super) fn sum(session: &SessionId<'_>, seq: u64, bytes: &[u8]) -> i64 {
    let id = session.as_str().as_bytes();
    let mut hash = Sha256::new();
    // With its length, so that no other id and number make the same bytes.
    hash.update((id.len() as u64).to_le_bytes());
    hash.update(id);
    hash.update(seq.to_le_bytes());
    hash.update(bytes);
    let digest = hash.finalize();
    let first = digest.first_chunk().expect("a digest has 32 bytes");
    i64::from_be_bytes(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that were written have to be read: the checksum of a row never changes.
    #[test]
    fn a_checksum_is_what_it_always_was() {
        let id = SessionId::new("session");
        assert_eq!(sum(&id, 7, b"line"), -4_550_272_721_557_442_537);
        assert_ne!(sum(&id, 8, b"line"), sum(&id, 7, b"line"));
    }
}
