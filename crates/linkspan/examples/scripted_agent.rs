//! An agent that does what its arguments say, in order; the tests of the runner start it.
//!
//! | Argument | Does |
//! | --- | --- |
//! | `say=TEXT` | prints a line |
//! | `echo` | prints its arguments and its whole stdin as JSON, and ends |
//! | `read` | reads stdin to its end |
//! | `flood=BYTES`, `stderr=BYTES` | writes without a newline to stdout; lines to stderr |
//! | `ignore` | ignores SIGINT and SIGTERM from here on |
//! | `session` | leaves its group and session |
//! | `start ( … )`, `forget ( … )` | starts itself with these arguments; `forget` with an empty environment |
//! | `bomb=DEPTH` | starts itself twice, and so on |
//! | `stop-guard`, `kill-guard` | sends its parent SIGSTOP or SIGKILL |
//! | `sleep=MILLIS`, `hold` | waits; `hold` longer than any test |
//! | `exit=CODE`, `signal=NUMBER` | ends |

#![expect(clippy::unwrap_used, reason = "only the tests see it fail")]
#![expect(clippy::print_stdout, reason = "it is a program")]

use std::io::{self, Read, Write};
use std::process::{self, Command};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{env, thread};

use rustix::process::{Signal, getpid, getppid, kill_process, setsid};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};

/// Longer than any test, short enough that a failed one does not litter the machine.
const HOLD: Duration = Duration::from_secs(60);

fn main() {
    let args: Vec<String> = env::args_os()
        .skip(1)
        .map(|it| it.into_string().unwrap())
        .collect();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let (verb, value) = arg.split_once('=').unwrap_or((arg, ""));
        match verb {
            "say" => println!("{value}"),
            "echo" => return echo(&args),
            "read" => {
                io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
            }
            "flood" => flood(&mut io::stdout(), &[b'x'; 65536], value),
            "stderr" => flood(&mut io::stderr(), b"something is odd\n", value),
            "ignore" => {
                for signal in [SIGINT, SIGTERM] {
                    signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).unwrap();
                }
            }
            "session" => {
                setsid().unwrap();
            }
            "start" => start(&block(&mut rest), |it| it),
            "forget" => start(&block(&mut rest), Command::env_clear),
            "bomb" => bomb(value.parse().unwrap()),
            "stop-guard" => kill_process(getppid().unwrap(), Signal::STOP).unwrap(),
            "kill-guard" => kill_process(getppid().unwrap(), Signal::KILL).unwrap(),
            "sleep" => thread::sleep(Duration::from_millis(value.parse().unwrap())),
            "hold" => thread::sleep(HOLD),
            "exit" => process::exit(value.parse().unwrap()),
            "signal" => {
                let signal = Signal::from_named_raw(value.parse().unwrap()).unwrap();
                kill_process(getpid(), signal).unwrap();
            }
            other => panic!("unknown argument {other:?}"),
        }
    }
}

fn echo(args: &[String]) {
    let mut stdin = String::new();
    io::stdin().read_to_string(&mut stdin).unwrap();
    println!("{}", json!({ "args": args, "stdin": stdin }));
}

fn flood(out: &mut impl Write, piece: &[u8], n_bytes: &str) {
    let n_bytes: usize = n_bytes.parse().unwrap();
    for _ in 0..n_bytes.div_ceil(piece.len()) {
        // Whoever reads it may have enough.
        if out.write_all(piece).is_err() {
            return;
        }
    }
}

/// What stands between `(` and the `)` that belongs to it.
fn block<'a>(rest: &mut impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    assert_eq!(rest.next().unwrap(), "(");
    let mut depth = 1;
    let inside = rest.take_while(|it| {
        depth += i32::from(*it == "(") - i32::from(*it == ")");
        depth > 0
    });
    inside.collect()
}

fn start(args: &[&String], change: impl Fn(&mut Command) -> &mut Command) {
    let mut command = Command::new(env::current_exe().unwrap());
    #[expect(clippy::zombie_processes, reason = "the guard has to see to it")]
    change(command.args(args)).spawn().unwrap();
}

fn bomb(depth: u32) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    let (bomb, hold) = (format!("bomb={depth}"), "hold".to_owned());
    for _ in 0..2 {
        start(&[&bomb, &hold], |it| it);
    }
}
