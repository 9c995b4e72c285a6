//! Prompts and ids are data: through the guard and the agent's own arguments they arrive as they were.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Instant;

use model::Exit;
use runner::Stdin;
use runner::process::{Process, ProcessTag};
use serde_json::json;
use tokio::io::AsyncReadExt;

use super::{guard, launch, rounds, soaked};

/// How many arguments one agent is given; each is a prompt of its own.
const AT_ONCE: usize = 100;

/// What could be taken for a flag, a file, a variable, a pattern, or the end of something.
const HOSTILE: &[&str] = &[
    "",
    "-",
    "--",
    "---",
    "--help",
    "-p",
    "-p x",
    "--resume=1",
    "__guard",
    "@/etc/passwd",
    "$HOME",
    "`id`",
    "$(id)",
    "; id",
    "| id",
    "&& id",
    "> f",
    "*",
    "?",
    "[a-z]",
    "~",
    "~root",
    "!!",
    "%s%n",
    "\\",
    "\\n",
    "'",
    "\"",
    "\n",
    "\r",
    "\r\n",
    "\t",
    " ",
    "\u{1b}[2J",
    "\u{7}",
    "\u{7f}",
    "\u{9b}",
    "\u{feff}",
    "\u{202e}",
    "\u{ffff}",
    "\u{10ffff}",
    "🙂",
    "e\u{301}",
    "=",
    "a=b",
    "LD_PRELOAD=x",
    "../..",
    "/",
    "C:\\",
    "NUL",
    "{}",
    "[]",
    "null",
    "(",
    ")",
    "hold",
];

/// Random, and the same in every run.
fn random(seed: usize, n: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    (seed, n).hash(&mut hasher);
    usize::try_from(hasher.finish() >> 1).unwrap()
}

/// Pieces of the table above, mixed with any character but NUL, which no argument can hold.
fn hostile(seed: usize) -> String {
    if let Some(it) = HOSTILE.get(seed) {
        return (*it).to_owned();
    }
    let piece = |n| match random(seed, n) {
        it if it % 2 == 0 => HOSTILE[it / 2 % HOSTILE.len()].to_owned(),
        it => {
            let any = char::from_u32(u32::try_from(it / 2 % 0x11_0000).unwrap()).unwrap_or('-');
            any.to_string().replace('\0', "-")
        }
    };
    (1..=random(seed, 0) % 12).map(piece).collect()
}

#[tokio::test]
async fn hostile_arguments_and_input_arrive_byte_for_byte() {
    let began = Instant::now();
    let n_batches = rounds(3000).div_ceil(AT_ONCE);
    for batch in 0..n_batches {
        let prompts: Vec<String> = (0..AT_ONCE).map(|n| hostile(batch * AT_ONCE + n)).collect();
        let mut args = vec!["echo"];
        args.extend(prompts.iter().map(String::as_str));
        let stdin = prompts.join("\0");
        let launch = launch(&args, Stdin::Text(stdin.clone()));
        let mut process = Process::spawn(&launch, &guard(), ProcessTag::random().unwrap()).unwrap();
        let mut stdout = String::new();
        let mut pipe = process.stdout.take().unwrap();
        let (exit, _) = tokio::join!(process.wait(), pipe.read_to_string(&mut stdout));
        let got: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(
            (exit, got),
            (Exit::Code(0), json!({ "args": args, "stdin": stdin }))
        );
    }
    let n_arguments = n_batches * AT_ONCE;
    let what = format!("{n_arguments} hostile arguments, all arrived as they were");
    soaked(began, &what);
}

#[tokio::test]
async fn an_argument_with_nul_is_refused() {
    let launch = launch(&["echo", "a\0b"], Stdin::Closed);
    let err = Process::spawn(&launch, &guard(), ProcessTag::random().unwrap()).unwrap_err();
    assert!(err.to_string().starts_with("cannot start `"), "{err}");
}
