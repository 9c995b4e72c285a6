//! Rules that hold for any bytes: no panic, one end per run, everything closed, chunks do not matter.

use std::fmt::Write as _;

use formats::framing::Framer;
use formats::registry::{FORMATS, find_reader, writer};
use formats::{ReaderConfig, ServedThread, WriterConfig};
use model::{End, Event, Reader, Writer};

use crate::fixtures::{BEGAN, Recording, convert, recordings};
use crate::invariants::Law;

/// Files up to this size are cut at every byte, larger ones at every line.
const CUT_EVERYWHERE: usize = 64 * 1024;
/// Inside a line one cut in so many is read, and one in so many is written, too; [`is_thorough`] takes all.
const READ_ONE_CUT_IN: usize = 4;
const WRITE_ONE_CUT_IN: usize = 29;

/// `LINKSPAN_EVERY_BYTE` is set, as `cargo xtask test` does in a step of its own.
fn is_thorough() -> bool {
    std::env::var_os("LINKSPAN_EVERY_BYTE").is_some()
}

/// How often a recording is damaged; the fast tier does a quarter of it.
fn rounds(thorough: usize) -> usize {
    if is_thorough() {
        thorough
    } else {
        thorough.div_ceil(4)
    }
}

/// One reader with every writer behind it, each watched by its law.
struct Fan {
    framer: Framer,
    reader: Box<dyn Reader>,
    outs: Vec<Out>,
}

struct Out {
    name: String,
    writer: Box<dyn Writer>,
    law: Law,
}

impl Clone for Fan {
    fn clone(&self) -> Self {
        let outs = self.outs.iter().map(|out| Out {
            name: out.name.clone(),
            writer: out.writer.clone_box(),
            law: out.law.clone(),
        });
        Self {
            framer: self.framer.clone(),
            reader: self.reader.clone_box(),
            outs: outs.collect(),
        }
    }
}

impl Fan {
    fn new(from: &str) -> Self {
        let (format, reader) = find_reader(from).unwrap();
        let reader = reader(&ReaderConfig {
            started_at: Some(BEGAN),
            ..ReaderConfig::default()
        });
        let mut outs = Vec::new();
        for format in FORMATS.iter().filter(|it| it.writer.is_some()) {
            for profile in
                std::iter::once(None).chain(format.profiles.iter().map(|it| Some(it.name)))
            {
                let config = WriterConfig {
                    profile: profile.map(str::to_owned),
                    live: false,
                    began: Some(BEGAN),
                    ..WriterConfig::default()
                };
                let mut name = format.name.to_owned();
                if let Some(profile) = profile {
                    write!(name, " --profile {profile}").unwrap();
                }
                outs.push(Out {
                    name,
                    writer: writer(format.name, &config).unwrap(),
                    law: Law::new(format.name, profile),
                });
            }
        }
        // As a server writes it.
        let served = WriterConfig {
            served: Some(ServedThread {
                base: "http://127.0.0.1:8787".to_owned(),
                max_output: Some(16),
            }),
            ..WriterConfig::default()
        };
        outs.push(Out {
            name: "thread of a server".to_owned(),
            writer: writer("thread", &served).unwrap(),
            law: Law::new("thread", None),
        });
        Self {
            framer: Framer::new(format.framing),
            reader,
            outs,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let Self {
            framer,
            reader,
            outs,
        } = self;
        framer.push(bytes, &mut |frame| {
            reader.frame(frame, &mut |event: &Event<'_>| write_event(outs, event))
        });
    }

    /// Ends the stream and asks every law.
    fn verdict(mut self, end: &End) -> Result<(), String> {
        let Self {
            framer,
            reader,
            outs,
        } = &mut self;
        framer.end(&mut |frame| {
            reader.frame(frame, &mut |event: &Event<'_>| write_event(outs, event))
        });
        reader.end(end, &mut |event: &Event<'_>| write_event(outs, event));
        for out in &mut self.outs {
            let mut bytes = Vec::new();
            out.writer.end(&mut bytes);
            out.law.push(&bytes);
        }
        let canonical = self.outs.iter().find(|it| it.name == "linkspan").unwrap();
        let n_runs = canonical.law.n_ended();
        canonical
            .law
            .clone()
            .verdict(n_runs)
            .map_err(|why| format!("linkspan: {why}"))?;
        if n_runs == 0 {
            return Err("no run at all".to_owned());
        }
        for out in self.outs {
            out.law
                .verdict(n_runs)
                .map_err(|why| format!("{}: {why}", out.name))?;
        }
        Ok(())
    }
}

fn write_event(outs: &mut [Out], event: &Event<'_>) {
    let mut bytes = Vec::new();
    for out in outs {
        bytes.clear();
        out.writer.event(event, &mut bytes);
        out.law.push(&bytes);
    }
}

fn whole(from: &str, bytes: &[u8], end: &End) -> Result<(), String> {
    let mut fan = Fan::new(from);
    fan.push(bytes);
    fan.verdict(end)
}

/// The formats of agents; `linkspan` is what they are read into. `LINKSPAN_FORMAT` chooses one of them.
fn formats() -> Vec<&'static str> {
    let chosen = std::env::var("LINKSPAN_FORMAT").ok();
    let readers = FORMATS.iter().filter(|it| it.reader.is_some());
    let names = readers.map(|it| it.name).filter(|it| *it != "linkspan");
    names
        .filter(|it| chosen.as_deref().is_none_or(|chosen| chosen == *it))
        .collect()
}

/// Runs a check over all recordings of all formats on both cores.
fn for_all(check: impl Fn(&str, &Recording) -> Result<(), String> + Sync) {
    let of_format = |from: &'static str| recordings(from).into_iter().map(move |it| (from, it));
    let all: Vec<_> = formats().into_iter().flat_map(of_format).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let failures = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some((from, recording)) = all.get(at) else {
                        return;
                    };
                    if let Err(why) = check(from, recording) {
                        let failure = format!("{from}/{}: {why}", recording.name);
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Small, seeded and good enough to pick places.
struct Dice(u64);

impl Dice {
    fn for_name(name: &str) -> Self {
        Self(name.bytes().fold(0x9e37_79b9_7f4a_7c15, |sum, it| {
            sum.wrapping_mul(31).wrapping_add(it.into())
        }))
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

#[test]
fn every_prefix_ends_well() {
    for_all(|from, recording| {
        let mut fan = Fan::new(from);
        let mut only_read = Fan::new(from);
        only_read.outs.retain(|out| out.name == "linkspan");
        fan.clone().verdict(&recording.end)?;
        let everywhere = recording.bytes.len() <= CUT_EVERYWHERE;
        let is_thorough = is_thorough();
        let mut at = 0;
        for line in recording.bytes.split_inclusive(|it| *it == b'\n') {
            if everywhere {
                for cut in 1..line.len() {
                    let is_written = is_thorough || cut % WRITE_ONE_CUT_IN == 0;
                    if !is_written && cut % READ_ONE_CUT_IN != 0 {
                        continue;
                    }
                    let mut cut_fan = if is_written {
                        fan.clone()
                    } else {
                        only_read.clone()
                    };
                    cut_fan.push(&line[..cut]);
                    cut_fan
                        .verdict(&End::default())
                        .map_err(|why| format!("cut at byte {}: {why}", at + cut))?;
                }
            }
            at += line.len();
            fan.push(line);
            only_read.push(line);
            fan.clone()
                .verdict(&recording.end)
                .map_err(|why| format!("cut at byte {at}: {why}"))?;
        }
        Ok(())
    });
}

#[test]
fn a_changed_byte_costs_no_more_than_its_line() {
    for_all(|from, recording| {
        let mut dice = Dice::for_name(&recording.name);
        let n = if recording.bytes.len() > CUT_EVERYWHERE {
            8
        } else {
            96
        };
        for _ in 0..rounds(n) {
            let at = dice.below(recording.bytes.len());
            let mut bytes = recording.bytes.clone();
            bytes[at] = dice.below(256) as u8;
            whole(from, &bytes, &recording.end)
                .map_err(|why| format!("byte {at} = {}: {why}", bytes[at]))?;
        }
        Ok(())
    });
}

#[test]
fn dropped_doubled_and_swapped_lines_end_well() {
    for_all(|from, recording| {
        let lines: Vec<&[u8]> = recording.bytes.split_inclusive(|it| *it == b'\n').collect();
        let mut dice = Dice::for_name(&recording.name);
        let sample: Vec<usize> =
            if is_thorough() && lines.len() <= 40 && recording.bytes.len() <= CUT_EVERYWHERE {
                (0..lines.len()).collect()
            } else {
                (0..rounds(24)).map(|_| dice.below(lines.len())).collect()
            };
        for at in sample {
            let dropped = [&lines[..at], &lines[at + 1..]].concat().concat();
            let doubled = [&lines[..=at], &lines[at..]].concat().concat();
            let mut swapped = lines.clone();
            swapped.swap(at, dice.below(lines.len()));
            for (how, bytes) in [
                ("dropped", dropped),
                ("doubled", doubled),
                ("swapped", swapped.concat()),
            ] {
                whole(from, &bytes, &recording.end)
                    .map_err(|why| format!("line {} {how}: {why}", at + 1))?;
            }
        }
        Ok(())
    });
}

#[test]
fn chunks_do_not_matter() {
    let writers: Vec<&str> = FORMATS
        .iter()
        .filter(|it| it.writer.is_some())
        .map(|it| it.name)
        .collect();
    for_all(|from, recording| {
        let mut dice = Dice::for_name(&recording.name);
        for to in &writers {
            let expected = convert(from, to, None, &recording.bytes, &recording.end);
            for most in [1, 2, 7, 64, 1000, 100_000] {
                if most < 64 && recording.bytes.len() > CUT_EVERYWHERE {
                    continue;
                }
                let mut converter = crate::fixtures::converter(from, to, None);
                let mut out = Vec::new();
                let mut rest = &recording.bytes[..];
                while !rest.is_empty() {
                    let (chunk, after) = rest.split_at((1 + dice.below(most)).min(rest.len()));
                    converter.push(chunk, &mut out);
                    rest = after;
                }
                converter.end(&recording.end, &mut out);
                if out != expected.as_bytes() {
                    return Err(format!(
                        "{to}: chunks of up to {most} bytes change the output"
                    ));
                }
            }
        }
        Ok(())
    });
}

#[test]
fn damaged_canonical_files_become_valid() {
    for_all(|from, recording| {
        let events = convert(from, "linkspan", None, &recording.bytes, &recording.end);
        let lines: Vec<&[u8]> = events
            .as_bytes()
            .split_inclusive(|it| *it == b'\n')
            .collect();
        let mut dice = Dice::for_name(&recording.name);
        for _ in 0..rounds(24) {
            let at = dice.below(lines.len());
            let dropped = [&lines[..at], &lines[at + 1..]].concat().concat();
            let doubled = [&lines[..=at], &lines[at..]].concat().concat();
            let mut swapped = lines.clone();
            swapped.swap(at, dice.below(lines.len()));
            let cut = lines[..at].concat();
            for (how, bytes) in [
                ("dropped", dropped),
                ("doubled", doubled),
                ("swapped", swapped.concat()),
                ("cut", cut),
            ] {
                if bytes.is_empty() {
                    continue;
                }
                valid(&bytes).map_err(|why| format!("event {} {how}: {why}", at + 1))?;
            }
        }
        Ok(())
    });
}

/// A canonical file without a run may have no end; everything else holds.
fn valid(bytes: &[u8]) -> Result<(), String> {
    match whole("linkspan", bytes, &End::default()) {
        Err(why) if why == "no run at all" => Ok(()),
        verdict => verdict,
    }
}

#[test]
fn no_bytes_at_all_are_a_lost_run() {
    for from in formats() {
        for bytes in [&b""[..], b"\n\n \r\n", &[0xff; 1000]] {
            whole(from, bytes, &End::default()).unwrap_or_else(|why| panic!("{from}: {why}"));
        }
    }
}
