//! Archives whose bytes depend on nothing but their content.

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use tar::{Builder, Header};

/// A file of an archive.
pub(super) struct Entry {
    name: String,
    content: Vec<u8>,
    mode: u32,
}

impl Entry {
    pub(super) fn file(name: String, content: Vec<u8>) -> Self {
        Self {
            name,
            content,
            mode: 0o644,
        }
    }

    pub(super) fn program(name: String, content: Vec<u8>) -> Self {
        Self {
            mode: 0o755,
            ..Self::file(name, content)
        }
    }
}

/// Sorted, owned by root, with one time for all.
pub(super) fn tar_gz(mut entries: Vec<Entry>, epoch: u64) -> Result<Vec<u8>> {
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    // No time and no name: else two runs differ.
    let gzip = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    let mut tar = Builder::new(gzip);
    for entry in entries {
        let mut header = Header::new_gnu();
        header.set_size(entry.content.len() as u64);
        header.set_mode(entry.mode);
        header.set_mtime(epoch);
        header.set_uid(0);
        header.set_gid(0);
        tar.append_data(&mut header, &entry.name, entry.content.as_slice())?;
    }
    Ok(tar.into_inner()?.finish()?)
}

/// As `gzip -n` would.
pub(super) fn gz(content: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    std::io::Write::write_all(&mut gzip, content)?;
    Ok(gzip.finish()?)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn the_order_of_the_entries_does_not_matter() {
        let entries = || {
            [
                Entry::program("x/program".to_owned(), vec![1, 2]),
                Entry::file("x/README".to_owned(), b"words".to_vec()),
            ]
        };
        let forwards = tar_gz(entries().into(), 1_000_000_000).expect("it is packed");
        let backwards = tar_gz(entries().into_iter().rev().collect(), 1_000_000_000);
        assert_eq!(forwards, backwards.expect("it is packed"));

        let mut archive = tar::Archive::new(GzDecoder::new(forwards.as_slice()));
        let found: Vec<_> = archive
            .entries()
            .expect("it is a tar")
            .map(|it| {
                let mut it = it.expect("an entry");
                let mut content = Vec::new();
                it.read_to_end(&mut content).expect("its content");
                let header = it.header();
                let path = it.path().expect("its path").to_string_lossy().into_owned();
                let mode = header.mode().expect("its mode");
                (path, mode, header.mtime().expect("its time"), content)
            })
            .collect();
        let expected = [
            (
                "x/README".to_owned(),
                0o644,
                1_000_000_000,
                b"words".to_vec(),
            ),
            ("x/program".to_owned(), 0o755, 1_000_000_000, vec![1, 2]),
        ];
        assert_eq!(found, expected);
    }
}
