//! The `gemini` reader: any bytes give lawful events, in any chunking, for every writer.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| fuzz::read("gemini", data));
