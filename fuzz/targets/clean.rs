//! Mending a frame: what comes out is clean text, and clean JSON keeps its meaning.

#![no_main]

use formats::framing::clean;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::value::RawValue;

fuzz_target!(|data: &[u8]| {
    let cleaned = clean(data);
    let again = clean(cleaned.text.as_bytes());
    assert_eq!(again.text, cleaned.text);
    assert_eq!(again.repair, None, "something was left to mend");

    if let Ok(value) = serde_json::from_slice::<Value>(data) {
        assert_eq!(cleaned.repair, None, "sound JSON was mended");
        assert_eq!(
            serde_json::from_str::<Value>(&cleaned.text).ok(),
            Some(value)
        );
    }
    // A payload that is copied through must be readable by whoever gets it.
    if let Ok(raw) = serde_json::from_str::<&RawValue>(&cleaned.text)
        && raw.get().starts_with('"')
    {
        assert!(serde_json::from_str::<String>(raw.get()).is_ok(), "{raw}");
    }
});
