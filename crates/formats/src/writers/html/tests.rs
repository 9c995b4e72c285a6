use sha2::{Digest, Sha256};

use super::*;

#[test]
fn the_policy_allows_the_style_sheet_and_no_other() {
    let digest = Sha256::digest(STYLE.as_bytes());
    assert_eq!(base64(&digest), STYLE_HASH, "put this hash into STYLE_HASH");
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut bits = 0;
        for at in 0..3 {
            bits = bits << 8 | u32::from(*chunk.get(at).unwrap_or(&0));
        }
        for at in 0..4 {
            if at <= chunk.len() {
                text.push(char::from(ALPHABET[(bits >> (18 - 6 * at) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}
