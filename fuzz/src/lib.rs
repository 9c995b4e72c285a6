//! What the fuzz targets share: streams cut anywhere, and the laws every stream of events obeys.
//!
//! Run with `cargo xtask fuzz`, which fuzzes every reader of the registry. The inputs of a reader begin
//! with two bytes of choice: which writer and profile, and how the rest is cut into chunks.
//! `corpus/reader_NAME` keeps a few short recordings of a format.

mod invariants;

use std::sync::LazyLock;

use formats::convert::Converter;
use formats::registry::{self, FORMATS, Format, ProfileInfo};
use formats::{ReaderConfig, WriterConfig};
use model::End;

pub use invariants::check_invariants;

/// The format that this process fuzzes, by the environment.
pub fn reader() -> Option<&'static str> {
    static NAME: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("LINKSPAN_READER").ok());
    NAME.as_deref()
}

/// Prints the formats that can be read, one per line.
pub fn print_readers() {
    for format in FORMATS.iter().filter(|it| it.reader.is_some()) {
        println!("{}", format.name);
    }
}

/// Sends a stream through one reader, into the writer that its first byte chooses.
///
/// # Panics
///
/// When the events break a law, or when it matters how the stream was cut.
pub fn read(from: &str, data: &[u8]) {
    let [writer, cut, stream @ ..] = data else {
        return;
    };
    check_invariants(&convert(from, "linkspan", None, [stream]));

    let (to, profile) = target(*writer);
    let whole = convert(from, to.name, profile, [stream]);
    let cut_up = convert(from, to.name, profile, chunks(stream, *cut));
    assert!(
        whole == cut_up,
        "the chunking changed what {} says",
        to.name
    );
}

fn convert<'a>(
    from: &str,
    to: &str,
    profile: Option<&ProfileInfo>,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<u8> {
    let (format, reader) = registry::find_reader(from).expect("the target names a reader");
    let config = WriterConfig {
        profile: profile.map(|it| it.name.to_owned()),
        live: true,
        ..WriterConfig::default()
    };
    let writer = registry::writer(to, &config).expect("the table names a writer");
    let mut converter = Converter::new(format.framing, reader(&ReaderConfig::default()), writer);
    let mut out = Vec::new();
    for chunk in chunks {
        converter.push(chunk, &mut out);
    }
    converter.end(&End::default(), &mut out);
    out
}

/// The writer and profile that a byte chooses.
fn target(choice: u8) -> (&'static Format, Option<&'static ProfileInfo>) {
    let writers = FORMATS.iter().filter(|it| it.writer.is_some());
    let targets: Vec<_> = writers
        .flat_map(|format| {
            let profiles = format.profiles.iter().map(Some);
            [None]
                .into_iter()
                .chain(profiles)
                .map(move |it| (format, it))
        })
        .collect();
    targets[usize::from(choice) % targets.len()]
}

/// Cuts data into pieces of 1 to 64 bytes, the same way for the same seed.
pub fn chunks(mut data: &[u8], seed: u8) -> impl Iterator<Item = &[u8]> {
    let mut state = u32::from(seed).wrapping_mul(0x9e37_79b9) | 1;
    std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let n = (state as usize % 64 + 1).min(data.len());
        let (chunk, rest) = data.split_at(n);
        data = rest;
        (n > 0).then_some(chunk)
    })
}
