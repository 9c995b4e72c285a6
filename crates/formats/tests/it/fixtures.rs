//! The recordings, and how each of them ended.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use formats::convert::Converter;
use formats::registry::{find_reader, writer};
use formats::{ReaderConfig, WriterConfig};
use model::{End, Exit, Timestamp};
use serde::Deserialize;

/// A recorded stream.
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: End,
}

#[derive(Deserialize)]
struct Entry {
    stdout_file: Option<String>,
    exit: Option<i32>,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// Every recording of a format, in the order of their names.
pub(crate) fn recordings(format: &str) -> Vec<Recording> {
    let folder = root().join(format);
    // A folder of a format that is also written holds golden files: `NAME.FORMAT.EXTENSION`.
    let golden = format!(".{format}.");
    let exits: BTreeMap<String, i32> = match fs::read_to_string(folder.join("index.json")) {
        Ok(index) => {
            let index: Vec<Entry> = serde_json::from_str(&index).unwrap();
            index
                .into_iter()
                .filter_map(|it| Some((it.stdout_file?, it.exit?)))
                .collect()
        }
        Err(_) => BTreeMap::new(),
    };
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_recording = name.ends_with(".jsonl") || name.ends_with(".sse");
        is_recording && !name.ends_with(".events.jsonl") && !name.contains(&golden)
    });
    paths.sort();
    assert!(!paths.is_empty(), "no recordings in {}", folder.display());
    paths
        .into_iter()
        .map(|path| {
            let file = path.file_name().unwrap().to_str().unwrap().to_owned();
            let exit = exits.get(&file).map(|code| match code {
                code if *code < 0 => Exit::Signal(-code),
                code => Exit::Code(*code),
            });
            let bytes = fs::read(&path).unwrap();
            let name = file.rsplit_once('.').unwrap().0.to_owned();
            Recording {
                name,
                path,
                bytes,
                end: End {
                    exit,
                    aborted: false,
                },
            }
        })
        .collect()
}

/// The time every test stream begins.
pub(crate) const BEGAN: Timestamp = Timestamp::from_millis(1_794_700_000_000);

pub(crate) fn converter(from: &str, to: &str, profile: Option<&str>) -> Converter {
    let (format, reader) = find_reader(from).unwrap();
    let reader = reader(&ReaderConfig {
        started_at: Some(BEGAN),
        ..ReaderConfig::default()
    });
    let profile = profile.map(str::to_owned);
    let config = WriterConfig {
        profile,
        began: Some(BEGAN),
        ..WriterConfig::default()
    };
    Converter::new(format.framing, reader, writer(to, &config).unwrap())
}

/// Converts a whole stream at once.
pub(crate) fn convert(
    from: &str,
    to: &str,
    profile: Option<&str>,
    bytes: &[u8],
    end: &End,
) -> String {
    let mut converter = converter(from, to, profile);
    let mut out = Vec::new();
    converter.push(bytes, &mut out);
    converter.end(end, &mut out);
    String::from_utf8(out).unwrap()
}
