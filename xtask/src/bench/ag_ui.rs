//! `cargo xtask bench ag-ui`: what the AG-UI endpoint adds to a model's stream.
//!
//! A provider of this file writes the time into every piece of text, at a steady pace, and a client reads
//! it on the other side of linkspan: the difference is what linkspan adds. Once the endpoint keeps its
//! threads in memory, once in a journal on disk. The throughput is that of the conversion inside, beside a
//! program that only cuts and parses the same stream, and beside a loop in Node.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, ChildStderr, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail};

use super::{USAGE, build, contenders, measure::watch, print, table::median};
use crate::{process::target_dir, report::print_line};

/// Of the throughput.
const ROUNDS: usize = 15;
const TOKEN: &str = "bench-bench-bench-bench-bench-bench-bench-1";

#[derive(Debug)]
pub(super) struct AgUiOptions {
    /// Pieces of text in a stream.
    pieces: usize,
    /// Pieces a second.
    rate: u64,
    megabytes: u64,
}

impl AgUiOptions {
    pub(super) fn read(args: &[&str]) -> Result<Self> {
        let mut options = Self {
            pieces: 20_000,
            rate: 2_000,
            megabytes: 200,
        };
        for pair in args.chunks(2) {
            match pair {
                ["--pieces", it] => options.pieces = it.parse().context("--pieces")?,
                ["--rate", it] => options.rate = it.parse().context("--rate")?,
                ["--megabytes", it] => options.megabytes = it.parse().context("--megabytes")?,
                _ => bail!("{USAGE}"),
            }
        }
        if options.pieces == 0 || options.rate == 0 || options.megabytes == 0 {
            bail!("{USAGE}");
        }
        Ok(options)
    }
}

pub(super) fn run(options: &AgUiOptions) -> Result<()> {
    let built = build()?;
    let programs = contenders::BenchPrograms::in_folder(&built);
    let folder = target_dir()?.join("bench/ag-ui");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    latency(&built, &folder, options)?;
    throughput(&programs, &folder, options)
}

fn latency(built: &Path, folder: &Path, options: &AgUiOptions) -> Result<()> {
    let mut rows = String::from("added latency        p50        p99   goal p50\n");
    for (name, goal) in [("in memory", 1.0), ("journal", 10.0)] {
        print_line(&format!("latency, {name}"));
        let provider = Provider::start(options)?;
        let config = folder.join("config.toml");
        let endpoint = format!(
            "[engines.responses.bench]\nbase_url = \"{}\"\nmodel = \"m\"\n",
            provider.url
        );
        fs::write(&config, endpoint)?;
        let mut server = match name {
            "journal" => {
                let mut command = Command::new(built.join("linkspan"));
                command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
                command.arg(folder.join("data"));
                AgUiServer::start(&mut command, &config, "/ag-ui/responses:bench")?
            }
            _ => {
                let mut command = Command::new(built.join("examples/ag_ui_server"));
                command.arg("responses:bench");
                AgUiServer::start(&mut command, &config, "/ag-ui")?
            }
        };
        let mut micros = server.ask()?;
        micros.sort_unstable();
        if micros.len() < options.pieces {
            bail!("{} of {} pieces came through", micros.len(), options.pieces);
        }
        let at = |share: usize| micros[(micros.len() - 1) * share / 100] as f64 / 1000.0;
        rows.push_str(&format!(
            "{name:<12} {:>8.2} ms {:>7.2} ms {goal:>7.0} ms\n",
            at(50),
            at(99)
        ));
    }
    print(&rows)
}

/// A model that says what time it is.
struct Provider {
    url: String,
}

impl Provider {
    fn start(options: &AgUiOptions) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let (pieces, pause) = (
            options.pieces,
            Duration::from_nanos(1_000_000_000 / options.rate),
        );
        thread::spawn(move || -> Result<()> {
            let (mut stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            skip_request(&stream)?;
            stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
            )?;
            let mut say = |data: String| write!(stream, "data: {data}\n\n");
            say(r#"{"type":"response.created","response":{"id":"r1","object":"response","model":"m"}}"#.to_owned())?;
            say(r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1","role":"assistant","content":[]}}"#.to_owned())?;
            let begun = Instant::now();
            for n in 0..pieces {
                let due = begun + pause * u32::try_from(n)?;
                thread::sleep(due.saturating_duration_since(Instant::now()));
                say(format!(
                    r#"{{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"m1","delta":"t{} "}}"#,
                    now()
                ))?;
            }
            say(r#"{"type":"response.completed","response":{"id":"r1","object":"response","status":"completed","model":"m","output":[]}}"#.to_owned())?;
            Ok(())
        });
        Ok(Self { url })
    }
}

fn skip_request(stream: &TcpStream) -> Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    Ok(())
}

/// linkspan, or the example, at work.
struct AgUiServer {
    child: Child,
    host: String,
    path: &'static str,
    /// Kept, so that nothing it says is lost on a closed pipe.
    _pipes: (Option<ChildStdout>, Option<ChildStderr>),
}

impl AgUiServer {
    fn start(command: &mut Command, config: &Path, path: &'static str) -> Result<Self> {
        let mut child = command
            .env("LINKSPAN_CONFIG", config)
            .env("LINKSPAN_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        let is_server = path != "/ag-ui";
        let said: &mut dyn Read = match (is_server, &mut stdout, &mut stderr) {
            (true, _, Some(stderr)) => stderr,
            (false, Some(stdout), _) => stdout,
            _ => bail!("the pipes are ours"),
        };
        let mut line = Vec::new();
        let mut byte = [0];
        while said.read(&mut byte)? == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        let line = String::from_utf8(line)?;
        let url = line.split("http://").nth(1).context("it said no address")?;
        let host = url.split('/').next().unwrap_or(url).to_owned();
        Ok(Self {
            child,
            host,
            path,
            _pipes: (stdout, stderr),
        })
    }

    /// How many microseconds each piece took.
    fn ask(&mut self) -> Result<Vec<u64>> {
        let body =
            r#"{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":"go"}]}"#;
        let mut stream = TcpStream::connect(&self.host)?;
        write!(
            stream,
            "POST {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.path,
            self.host,
            body.len()
        )?;
        let mut micros = Vec::new();
        for line in BufReader::new(stream).split(b'\n') {
            let line = line?;
            let heard = now();
            let line = String::from_utf8_lossy(&line);
            if let Some((_, delta)) = line.split_once(r#""delta":"t"#) {
                let sent: u64 = delta.split(' ').next().unwrap_or_default().parse()?;
                micros.push(heard.saturating_sub(sent));
            }
            if line.contains("RUN_ERROR") {
                bail!("{line}");
            }
        }
        Ok(micros)
    }
}

impl Drop for AgUiServer {
    fn drop(&mut self) {
        // It has served its purpose; how it ends does not matter.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Microseconds on the clock that both ends look at.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since
        .ok()
        .and_then(|it| u64::try_from(it.as_micros()).ok())
        .unwrap_or_default()
}

/// Parses and writes again what it reads, as a bridge in JavaScript does.
const NODE: &str = r#"
let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  rest += chunk;
  const frames = rest.split("\n\n");
  rest = frames.pop();
  let out = "";
  for (const frame of frames) {
    const line = frame.split("\n").find((it) => it.startsWith("data: "));
    if (line) out += `data: ${JSON.stringify(JSON.parse(line.slice(6)))}\n\n`;
  }
  process.stdout.write(out);
});
"#;

fn throughput(
    programs: &contenders::BenchPrograms,
    folder: &Path,
    options: &AgUiOptions,
) -> Result<()> {
    let lines = folder.join("openresponses.jsonl");
    programs.write_corpus("openresponses", options.megabytes, &lines)?;
    let stream = folder.join("openresponses.sse");
    let text = fs::read_to_string(&lines)?;
    let framed: String = match text.starts_with('{') {
        true => text.lines().map(|it| format!("data: {it}\n\n")).collect(),
        false => text,
    };
    fs::write(&stream, &framed)?;
    let megabytes = framed.len() as f64 / 1e6;
    let mut convert = Command::new(programs.linkspan());
    convert.args(["convert", "--from", "openresponses", "--to", "ag-ui"]);
    convert.arg(&stream).args(["-o", "/dev/null"]);
    let mut node = Command::new("sh");
    node.args(["-c", "exec node -e \"$0\" < \"$1\" > /dev/null", NODE]);
    node.arg(&stream);
    let mut floor = Command::new(programs.xtask());
    floor.args(["bench", "floor", "sse"]).arg(&stream);
    let mut contenders = [
        ("linkspan", convert),
        ("cut and parse", floor),
        ("node", node),
    ];
    let mut rates = [const { Vec::new() }; 3];
    for round in 1..=ROUNDS {
        print_line(&format!("throughput, round {round} of {ROUNDS}"));
        for ((_, command), rates) in contenders.iter_mut().zip(&mut rates) {
            let cpu = watch(command)?.cpu.as_secs_f64();
            rates.push(megabytes / cpu.max(0.001));
        }
    }
    // Round by round: all had the same good and bad minutes.
    let [ours, floor, node] = &rates;
    let ratio = |others: &[f64]| median(ours.iter().zip(others).map(|(a, b)| a / b));
    let (of_floor, of_node) = (ratio(floor), ratio(node));
    let mut rows = String::from("\nMB per CPU second  median     lowest    highest\n");
    for ((name, _), rates) in contenders.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        let [low, middle, high] = [rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]];
        rows.push_str(&format!(
            "{name:<14} {middle:>10.1} {low:>10.1} {high:>10.1}\n"
        ));
    }
    rows.push_str(&format!(
        "of the floor {:.0} % (goal 60 %), {:.1} times node (goal 5)\n",
        of_floor * 100.0,
        of_node
    ));
    print(&rows)
}
