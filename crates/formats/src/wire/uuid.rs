//! A UUID as it is written: 32 digits and four dashes.

use serde::{Serialize, Serializer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Uuid(pub(crate) u128);

impl Uuid {
    pub(crate) fn digits(self) -> [u8; 36] {
        let mut text = [b'-'; 36];
        let mut at = 0;
        for byte in self.0.to_be_bytes() {
            if matches!(at, 8 | 13 | 18 | 23) {
                at += 1;
            }
            text[at] = hex(byte >> 4);
            text[at + 1] = hex(byte & 15);
            at += 2;
        }
        text
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        0..=9 => b'0' + digit,
        _ => b'a' + digit - 10,
    }
}

impl Serialize for Uuid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits = self.digits();
        serializer.serialize_str(std::str::from_utf8(&digits).expect("digits are ASCII"))
    }
}
