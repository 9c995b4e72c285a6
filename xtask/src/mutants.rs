//! `cargo xtask mutants`: whether the tests notice when the code is wrong. By hand only.
//!
//! All mutants are built once, in a copy of the workspace, each behind a switch; each test runs alone once, to see
//! which mutants it reaches; then each mutant runs with the tests that reach it, until one notices.
//! What was noticed in an earlier run is not run again while its file is the same; `--fresh` forgets it.
//! `docs/testing.md` has the figures, and the reasons of what survives.

mod build;
mod judge;
mod list;
mod suite;
mod switch;
mod values;

use std::{
    collections::{HashMap, HashSet},
    fs::{self, OpenOptions},
    hash::{DefaultHasher, Hash, Hasher},
    io::Write,
    path::Path,
    process::{self, Command, ExitCode},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use self::{
    build::TreeCopy,
    judge::{Judge, Verdict},
    list::Site,
    suite::{N_AT_ONCE, Suite},
};
use crate::{
    libtest,
    process::{capture, root, target_dir},
    report::print_line,
};

/// A part of the code base whose tests are measured.
struct CodePiece {
    name: &'static str,
    /// How the paths of its files begin.
    files: &'static [&'static str],
    /// Its tests count.
    package: &'static str,
}

const PIECES: &[CodePiece] = &[
    CodePiece {
        name: "formats",
        files: &[
            "crates/formats/src/framing",
            "crates/formats/src/readers/lifecycle",
        ],
        package: "formats",
    },
    CodePiece {
        name: "journal",
        files: &["crates/journal/src/sqlite"],
        package: "journal",
    },
    CodePiece {
        name: "hub",
        files: &["crates/hub/src/"],
        package: "hub",
    },
];

const USAGE: &str = "\
usage: cargo xtask mutants [--piece formats|journal|hub] [--only PART-OF-A-PATH] [--also PACKAGE] \
    [--sample N] [--fresh]";

struct MutantOptions<'a> {
    piece: Option<&'a str>,
    only: &'a str,
    /// Packages whose tests count, besides those of the piece.
    also: Vec<&'a str>,
    /// Every n-th mutant is run.
    sample: usize,
    fresh: bool,
}

/// A source file with mutants, which have the ids from `first` on.
struct MutatedFile {
    piece: &'static CodePiece,
    file: String,
    text: String,
    sites: Vec<Site>,
    first: usize,
}

impl MutatedFile {
    fn n_mutants(&self) -> usize {
        self.sites.iter().map(|it| it.mutants.len()).sum()
    }

    /// Changes with the code, and not with the tests below it.
    fn stamp(&self) -> u64 {
        let tests = self.text.find("\n#[cfg(test)]\nmod tests {");
        hash(&self.text[..tests.unwrap_or(self.text.len())])
    }
}

/// The code with one small error.
struct Mutant {
    id: usize,
    piece: &'static CodePiece,
    file: String,
    line: usize,
    function: String,
    what: String,
    /// The same as long as its file is.
    key: u64,
}

impl Mutant {
    fn describe(&self, verdict: &Verdict) -> String {
        let Mutant {
            file,
            line,
            function,
            what,
            ..
        } = self;
        let note = match verdict {
            Verdict::Unreached => " (not reached)",
            _ => "",
        };
        format!("survived: {file}:{line}: {function}: {what}{note}")
    }
}

#[derive(Deserialize, Serialize)]
struct KnownVerdict {
    key: u64,
    verdict: Verdict,
}

pub(crate) fn run(args: &[&str]) -> Result<ExitCode> {
    let options = options(args)?;
    let folder = target_dir()?.join("mutants");
    // For what the tests write; two pieces may be run at once.
    let scratch = folder.join(format!("run-{}", process::id()));
    fs::create_dir_all(&scratch)?;
    let files = files()?;
    let mutants: Vec<Mutant> = files.iter().flat_map(mutants).collect();
    let copy = TreeCopy::new(&folder);
    let refused = build(&copy, &files, &mutants, &folder)?;
    let known = folder.join("verdicts.jsonl");
    if options.fresh && known.exists() {
        fs::remove_file(&known)?;
    }
    let chosen = |it: &&Mutant| {
        options.piece.is_none_or(|name| name == it.piece.name)
            && it.file.contains(options.only)
            && !refused.contains(&it.id)
    };
    let chosen: Vec<&Mutant> = mutants
        .iter()
        .filter(chosen)
        .step_by(options.sample)
        .collect();
    let own = chosen.iter().map(|it| it.piece.package);
    let packages: HashSet<&str> = own.chain(options.also.iter().copied()).collect();
    let stamp = mutants.iter().fold(0, |all, it| hash(&(all, it.key)));
    let programs = libtest::built_by(copy.tests())?;
    let suites: Vec<Suite> = programs
        .into_iter()
        .filter(|it| packages.contains(it.package()) && it.target() != "agents")
        .map(|it| Suite::record(it, &folder, &scratch, stamp))
        .collect::<Result<_>>()?;
    let verdicts = judge_all(&chosen, &suites, &scratch, &known)?;
    fs::remove_dir_all(&scratch)?;
    print_all(&mutants, &refused, &chosen, &verdicts);
    Ok(ExitCode::SUCCESS)
}

fn options<'a>(args: &[&'a str]) -> Result<MutantOptions<'a>> {
    let mut options = MutantOptions {
        piece: None,
        only: "",
        also: Vec::new(),
        sample: 1,
        fresh: false,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || {
            args.next()
                .copied()
                .with_context(|| format!("`{arg}` needs a value\n{USAGE}"))
        };
        match *arg {
            "--piece" => options.piece = Some(value()?),
            "--only" => options.only = value()?,
            "--also" => options.also.push(value()?),
            "--sample" => options.sample = value()?.parse().context("--sample")?,
            "--fresh" => options.fresh = true,
            other => bail!("`{other}` is no option\n{USAGE}"),
        }
    }
    let is_known = |name: &str| PIECES.iter().any(|it| it.name == name);
    if let Some(name) = options.piece.filter(|it| !is_known(it)) {
        bail!("`{name}` is no piece\n{USAGE}");
    }
    Ok(options)
}

/// The files of all pieces; ids do not depend on which of them are run.
fn files() -> Result<Vec<MutatedFile>> {
    let mut git = Command::new("git");
    git.current_dir(root())
        .args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let listed = String::from_utf8(capture(&mut git)?.stdout)?;
    let (mut files, mut tests) = (Vec::new(), HashSet::new());
    for piece in PIECES {
        let is_inside =
            |it: &&str| it.ends_with(".rs") && piece.files.iter().any(|at| it.starts_with(at));
        for file in listed
            .lines()
            .filter(is_inside)
            .filter(|it| root().join(it).exists())
        {
            let text = fs::read_to_string(root().join(file))?;
            let found = list::find(&text).with_context(|| format!("cannot read `{file}`"))?;
            let folder = file.trim_end_matches(".rs").trim_end_matches("/lib");
            tests.extend(
                found
                    .test_modules
                    .iter()
                    .map(|it| format!("{folder}/{it}.rs")),
            );
            files.push(MutatedFile {
                piece,
                file: file.to_owned(),
                text,
                sites: found.sites,
                first: 0,
            });
        }
    }
    files.retain(|it| !tests.contains(&it.file));
    // 0 is no mutant.
    let mut next = 1;
    for file in &mut files {
        file.first = next;
        next += file.n_mutants();
    }
    Ok(files)
}

fn mutants(file: &MutatedFile) -> Vec<Mutant> {
    let stamp = file.stamp();
    let all = file
        .sites
        .iter()
        .flat_map(|site| site.mutants.iter().map(move |it| (site, it)));
    all.enumerate()
        .map(|(n, (site, it))| Mutant {
            id: file.first + n,
            piece: file.piece,
            file: file.file.clone(),
            line: site.line,
            function: site.function.clone(),
            what: it.what.clone(),
            key: hash(&(&file.file, stamp, n)),
        })
        .collect()
}

/// Builds the copy; what the compiler has refused before is left out at once.
fn build(
    copy: &TreeCopy,
    files: &[MutatedFile],
    mutants: &[Mutant],
    folder: &Path,
) -> Result<HashSet<usize>> {
    let known = folder.join("refused.json");
    let keys: HashSet<u64> = match fs::read(&known) {
        Ok(bytes) => serde_json::from_slice(&bytes)?,
        Err(_) => HashSet::new(),
    };
    let before = mutants.iter().filter(|it| keys.contains(&it.key));
    let mut refused: HashSet<usize> = before.map(|it| it.id).collect();
    copy.build(files, &mut refused)?;
    let keys = mutants
        .iter()
        .filter(|it| refused.contains(&it.id))
        .map(|it| it.key);
    fs::write(&known, serde_json::to_vec(&keys.collect::<Vec<u64>>())?)?;
    Ok(refused)
}

fn judge_all(
    chosen: &[&Mutant],
    suites: &[Suite],
    scratch: &Path,
    known: &Path,
) -> Result<HashMap<usize, Verdict>> {
    let text = fs::read_to_string(known).unwrap_or_default();
    let before = text
        .lines()
        .filter_map(|it| serde_json::from_str::<KnownVerdict>(it).ok());
    let before: HashMap<u64, Verdict> = before.map(|it| (it.key, it.verdict)).collect();
    let file = OpenOptions::new().create(true).append(true).open(known)?;
    let judge = Judge {
        suites,
        scratch: scratch.to_owned(),
        last: Mutex::default(),
    };
    let (next, verdicts) = (AtomicUsize::new(0), Mutex::new(HashMap::new()));
    let work = |worker: usize| -> Result<()> {
        while let Some(mutant) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
            let verdict = match before.get(&mutant.key) {
                Some(verdict) => verdict.clone(),
                None => judge.judge(mutant, worker)?,
            };
            // What survived is tried again in the next run, which may have more tests.
            if verdict.is_killed() && !before.contains_key(&mutant.key) {
                let line = KnownVerdict {
                    key: mutant.key,
                    verdict: verdict.clone(),
                };
                (&file).write_all(format!("{}\n", serde_json::to_string(&line)?).as_bytes())?;
            }
            if !verdict.is_killed() {
                print_line(&mutant.describe(&verdict));
            }
            let mut verdicts = verdicts.lock().unwrap_or_else(PoisonError::into_inner);
            verdicts.insert(mutant.id, verdict);
            if verdicts.len().is_multiple_of(50) {
                print_line(&format!("{} of {} mutants", verdicts.len(), chosen.len()));
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..N_AT_ONCE)
            .map(|it| scope.spawn(move || work(it)))
            .collect();
        let mut joined = workers.into_iter().map(|it| it.join());
        joined.try_for_each(|it| it.expect("a worker does not panic"))
    })?;
    Ok(verdicts
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner))
}

/// The survivors in the order of the code, then a table with a row for each piece.
fn print_all(
    mutants: &[Mutant],
    refused: &HashSet<usize>,
    chosen: &[&Mutant],
    verdicts: &HashMap<usize, Verdict>,
) {
    print_line("");
    for it in chosen {
        let verdict = verdicts.get(&it.id).filter(|it| !it.is_killed());
        if let Some(verdict) = verdict {
            print_line(&it.describe(verdict));
        }
    }
    print_line(
        "\n| CodePiece | Listed | Compile | Run | Reached | Test failed | Test hung | Survived |",
    );
    print_line("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for piece in PIECES {
        let listed: Vec<&Mutant> = mutants
            .iter()
            .filter(|it| it.piece.name == piece.name)
            .collect();
        let n_refused = listed.iter().filter(|it| refused.contains(&it.id)).count();
        let run: Vec<&Verdict> = listed
            .iter()
            .filter_map(|it| verdicts.get(&it.id))
            .collect();
        let count = |is: fn(&Verdict) -> bool| run.iter().filter(|it| is(it)).count();
        let n_unreached = count(|it| matches!(it, Verdict::Unreached));
        let n_survived = run.len() - count(Verdict::is_killed);
        let share = 100.0 * n_survived as f64 / run.len().max(1) as f64;
        print_line(&format!(
            "| {} | {} | {} | {} | {} | {} | {} | {n_survived} ({share:.1} %) |",
            piece.name,
            listed.len(),
            listed.len() - n_refused,
            run.len(),
            run.len() - n_unreached,
            count(|it| matches!(it, Verdict::Failed(_))),
            count(|it| matches!(it, Verdict::TimedOut(_))),
        ));
    }
}

fn hash(of: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
