//! Processes are found and ended by their tag, and no others.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use super::*;

#[test]
fn a_marker_reads_back_as_it_was_written() {
    let tag = ProcessTag::random().unwrap();
    assert_eq!(tag.to_string().parse(), Ok(tag));
    assert_eq!(tag.to_string().len(), 32);
    assert_ne!(ProcessTag::random().unwrap(), tag);
}

#[test]
fn the_sweep_kills_tagged_processes_only() {
    let [mine, other] = [(); 2].map(|()| ProcessTag::random().unwrap());
    let start = |tag: ProcessTag| {
        Command::new("sleep")
            .arg("60")
            .env(VARIABLE, tag.to_string())
            .spawn()
            .unwrap()
    };
    let (mut first, mut second) = (start(mine), start(other));
    while !(mine.is_alive() && other.is_alive()) {
        thread::yield_now();
    }
    assert!(mine.end(Duration::ZERO, Duration::from_secs(10)));
    assert_eq!(first.wait().unwrap().signal(), Some(9));
    assert_eq!((mine.is_alive(), other.is_alive()), (false, true));
    assert!(other.end(Duration::from_secs(10), Duration::from_secs(10)));
    assert_eq!(second.wait().unwrap().signal(), Some(15));
}
