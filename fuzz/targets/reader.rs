//! Any reader: any bytes give lawful events, in any chunking, for every writer.
//!
//! `LINKSPAN_READER` names the format. Without it the target prints the formats that can be read and stops,
//! so that whoever runs it fuzzes each of them.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: {
        if fuzz::reader().is_none() {
            fuzz::print_readers();
            std::process::exit(0);
        }
    },
    |data: &[u8]| fuzz::read(fuzz::reader().expect("`LINKSPAN_READER` names a format"), data)
);
