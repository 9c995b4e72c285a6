//! A client of `linkspan acp`, and the agent behind it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use expect_test::Expect;
use serde_json::{Value, json};

use super::schema::{self, SentRequests};
use crate::program::{Folder, linkspan, machine, ran};

/// Speaks Claude Code's side of a conversation: what the prompt says is what it does.
pub(crate) const CLAUDE: &str = r#"
PATH=/usr/bin:/bin
echo $$ >> "$HOME/pids"
echo "$*" >> "$HOME/args"
echo "${ANTHROPIC_API_KEY-none}" >> "$HOME/keys"
s=s-1
case $* in *--fork-session*) s=s-2;; esac
case $* in *--mcp-config=*)
  file=${*#*--mcp-config=}; file=${file%% *}
  (stat -c %a "$file"; cat "$file") > "$HOME/mcp"; echo "$file" > "$HOME/mcp-file";;
esac
n=0
init() { echo '{"type":"system","subtype":"init","session_id":"'$s'","model":"m","cwd":"/w","permissionMode":"default","slash_commands":["compact"]}'; }
assistant() { echo '{"type":"assistant","message":{"id":"m'$$-$n-$1'","role":"assistant","content":['"$2"']},"session_id":"'$s'"}'; }
say() { assistant "$1" '{"type":"text","text":"'"$1"'"}'; }
call() { assistant "$1" '{"type":"tool_use","id":"t-'$$-$n'","name":"'"$1"'","input":'"$2"'}'; }
returned() { echo '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t-'$$-$n'","content":"ok"}]},"session_id":"'$s'"}'; }
wonder() { echo '{"type":"control_request","request_id":"q-'$$-$n'","request":{"subtype":"can_use_tool","tool_name":"'"$1"'","input":'"$2"',"tool_use_id":"t-'$$-$n'"}}'; }
result() { echo '{"type":"result","subtype":"success","is_error":false,"result":"x","session_id":"'$s'"}'; }
while read -r line; do
  n=$((n+1))
  case $line in
    *'"initialize"'*) echo '{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{"commands":[{"name":"compact","description":"Free up context","argumentHint":"[focus]"}],"models":[{"value":"opus","displayName":"Opus","description":"the best"}]}}}';;
    *'"interrupt"'*) hangs=; echo '{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"'$s'"}';;
    *'"set_permission_mode"'*) echo "$line" >> "$HOME/modes"; if [ "$hangs" ]; then say Changed.; fi;;
    *'"control_response"'*) printf "%s\n" "$line" >> "$HOME/answers"; say Answered.; result;;
    *hang*) init; hangs=1; say Working.;;
    *stuck*) init; say Working.; trap '' INT TERM; while :; do sleep 1; done;;
    *'ask me'*) init; call Bash '{"command":"ls"}'; wonder Bash '{"command":"ls"}';;
    *'edit it'*) init
      edit='{"file_path":"/w/a.rs","old_string":"a","new_string":"b"}'
      call Edit "$edit"; say One.; say Two.; wonder Edit "$edit";;
    *'wonder which'*) init
      which='{"questions":[{"question":"Color?","header":"C","multiSelect":false,"options":[{"label":"Red","description":""},{"label":"Blue","description":""}]},{"question":"Size?","header":"S","multiSelect":false,"options":[{"label":"Small","description":""},{"label":"Big","description":""}]}]}'
      call AskUserQuestion "$which"; wonder AskUserQuestion "$which";;
    *'make a plan'*) init
      call TodoWrite '{"todos":[{"content":"Do it","status":"pending","activeForm":"Doing it"}]}'; returned; say Planned.; result;;
    *die*) init; exit 3;;
    *'"user"'*) init; printf "%s\n" "$line" >> "$HOME/prompts"; say Hello.; result;;
  esac
done
"#;

pub(crate) fn made(name: &str) -> Folder {
    made_with(name, "interrupt_grace = 1\n")
}

pub(crate) fn made_with(name: &str, config: &str) -> Folder {
    let folder = machine(name, &[("claude", CLAUDE)], config);
    fs::create_dir_all(folder.path("work")).unwrap();
    folder
}

pub(super) struct Client {
    pub(super) child: Child,
    pub(super) stdin: Option<ChildStdin>,
    said: Receiver<Value>,
    n_asked: u64,
    asked: SentRequests,
    /// What came while an answer was waited for.
    pub(super) heard: Vec<Value>,
}

impl Client {
    pub(super) fn new(folder: &Folder, args: &[&str]) -> Self {
        let mut command = linkspan(&["acp", "--engine", "claude"]);
        Self::started(command.args(args), folder)
    }

    pub(super) fn started(command: &mut Command, folder: &Folder) -> Self {
        Self::begun(at_home(command, folder))
    }

    /// One whose program has its surroundings already.
    pub(super) fn begun(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (tx, said) = mpsc::channel();
        let asked = SentRequests::default();
        let known = SentRequests::clone(&asked);
        thread::spawn(move || {
            for line in stdout.lines() {
                let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
                schema::check(&message, &known);
                if tx.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            said,
            n_asked: 0,
            asked,
            heard: Vec::new(),
        }
    }

    /// One that has said hello.
    pub(super) fn ready(folder: &Folder, args: &[&str]) -> Self {
        let mut client = Self::new(folder, args);
        client.ask("initialize", json!({"protocolVersion": 1}));
        client
    }

    pub(super) fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
    }

    pub(super) fn next(&self) -> Value {
        let wait = Duration::from_secs(30);
        self.said.recv_timeout(wait).expect("nothing is said")
    }

    /// The id of a request that is about to be written.
    pub(super) fn expect(&mut self, method: &str) -> u64 {
        self.n_asked += 1;
        let mut asked = self.asked.lock().unwrap();
        asked.insert(self.n_asked, method.to_owned());
        self.n_asked
    }

    pub(super) fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.expect(method);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write(&message.to_string());
        id
    }

    pub(super) fn notify(&mut self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.write(&message.to_string());
    }

    /// Answers a request of the agent.
    pub(super) fn reply(&mut self, request: &Value, result: Value) {
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        self.write(&answer.to_string());
    }

    /// Waits for the answer to a request; all else is kept.
    pub(super) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.heard.push(message);
        }
    }

    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    pub(super) fn new_session(&mut self, folder: &Folder) -> String {
        let params = json!({"cwd": folder.path("work"), "mcpServers": []});
        let answer = self.ask("session/new", params);
        let id = answer["result"]["sessionId"].as_str();
        id.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub(super) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send(
            "session/prompt",
            json!({"sessionId": session, "prompt": prompt}),
        )
    }

    /// Waits until this is among the updates.
    pub(super) fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next();
            self.heard.push(message.clone());
            if wanted(&message) {
                return message;
            }
        }
    }

    /// Closes stdin; the exit code.
    pub(super) fn leave(mut self) -> i32 {
        drop(self.stdin.take());
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap();
            }
            assert!(began.elapsed() < Duration::from_secs(20), "it stays");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may be gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A command that finds its agents and its journal in the folder.
pub(crate) fn at_home<'a>(command: &'a mut Command, folder: &Folder) -> &'a mut Command {
    command
        .env_clear()
        .env("PATH", folder.path("bin"))
        .env("HOME", folder.path(""))
        // What root is offered does not depend on who runs the tests.
        .env("IS_SANDBOX", "1")
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .current_dir(folder.path("work"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
}

/// What the agent was answered.
pub(crate) fn answers(folder: &Folder) -> Vec<Value> {
    let answers = fs::read_to_string(folder.path("answers")).unwrap();
    let answers = answers.lines();
    answers
        .map(|it| serde_json::from_str::<Value>(it).unwrap()["response"]["response"].take())
        .collect()
}

/// How the runs of a session have ended, as the journal has it.
pub(crate) fn ends(folder: &Folder, session: &str) -> Vec<Value> {
    let mut command = linkspan(&["replay", session, "--to", "linkspan"]);
    let ran = ran(at_home(&mut command, folder).output().unwrap());
    let events = ran.stdout.lines();
    let events = events.map(|it| serde_json::from_str::<Value>(it).unwrap());
    events
        .filter(|it| it["type"] == "run.ended")
        .map(|it| it["data"]["outcome"].clone())
        .collect()
}

/// The updates of a run as short lines.
pub(super) fn transcript(messages: &[Value], session: &str) -> String {
    let mut text = String::new();
    for message in messages {
        let line = match message["params"].get("update") {
            Some(update) => update.to_string(),
            None => message.to_string(),
        };
        text.push_str(&line.replace(session, "SESSION"));
        text.push('\n');
    }
    text
}

pub(super) fn check(messages: &[Value], session: &str, expect: Expect) {
    expect.assert_eq(&transcript(messages, session));
}
