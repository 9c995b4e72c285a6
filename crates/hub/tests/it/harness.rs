//! What every test needs: a journal, a hub on it, an agent, and patience.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hub::{Hub, HubConfig, Limits, QueueLife, Submit, Target};
use journal::{Config, Deltas, Journal, ManualClock, Memory, Read, Run, Scope};
use model::{Event, Outcome, SessionId, Timestamp};
use runner::process::Guard;
use tempfile::TempDir;
use tokio::time::timeout;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// Speaks Claude's stream-json: `wait` works until it is interrupted, `ask` asks first, `flood` says more than
/// waits to be stored.
const AGENT: &str = r#"#!/bin/sh
echo started >> "$0.starts"
n=0
end() {
  echo '{"type":"result","subtype":"success","is_error":false,"session_id":"native-1","result":"'"$1"'"}'
}
while read -r line; do
  case $line in
  *'"type":"user"'*)
    n=$((n + 1))
    echo '{"type":"system","subtype":"init","session_id":"native-1","cwd":"/","model":"m","tools":[]}'
    case $line in
    *wait*) ;;
    *flood*)
      for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        printf '{"type":"assistant","session_id":"native-1","message":{"id":"m'$$-$i'","role":"assistant","content":[{"type":"text","text":"'
        head -c 1000000 /dev/zero | tr '\0' x
        echo '"}]}}'
      done
      end done
      ;;
    *ask*)
      echo '{"type":"assistant","session_id":"native-1","message":{"id":"m'$$-$n'","role":"assistant","content":[{"type":"tool_use","id":"t'$$-$n'","name":"Bash","input":{"command":"ls"}}]}}'
      echo '{"type":"control_request","request_id":"q'$n'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t'$$-$n'"}}'
      ;;
    *)
      echo '{"type":"assistant","session_id":"native-1","message":{"id":"m'$$-$n'","role":"assistant","content":[{"type":"text","text":"done"}]}}'
      end done
      ;;
    esac
    ;;
  *control_response*allow*) end allowed ;;
  *control_response*deny*) end denied ;;
  *interrupt*)
    echo '{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"native-1"}'
    ;;
  esac
done
"#;

pub(crate) struct Harness {
    pub(crate) dir: TempDir,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) journal: Arc<dyn Journal>,
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with(|journal| Arc::new(journal))
    }

    pub(crate) fn with(wrap: impl FnOnce(Memory) -> Arc<dyn Journal>) -> Self {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let clock = Arc::new(ManualClock::new(now));
        let journal = Memory::new(Config {
            clock: Arc::clone(&clock) as Arc<dyn journal::Clock>,
            cut: None,
        });
        let dir = TempDir::new().unwrap();
        let agent = dir.path().join("agent");
        fs::write(&agent, AGENT).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            dir,
            clock,
            journal: wrap(journal),
        }
    }

    /// An engine whose program is there and cannot be started.
    pub(crate) fn broken_agent(&self) -> String {
        let agent = self.dir.path().join("broken");
        fs::write(&agent, "#!/nowhere/interpreter\n").unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        format!("acp:{}", agent.display())
    }

    pub(crate) fn config(&self) -> HubConfig {
        self.config_with("")
    }

    /// With these lines in the user's settings too.
    pub(crate) fn config_with(&self, lines: &str) -> HubConfig {
        let agent = self.dir.path().join("agent");
        let text = format!(
            "[engines.claude]\nprogram = {:?}\n{lines}",
            agent.to_str().unwrap()
        );
        let file = Some((Path::new("test.toml"), &*text));
        HubConfig {
            journal: Arc::clone(&self.journal),
            settings: runner::config::Config::parse(file, |_| None).unwrap(),
            guard: Guard::None,
            locks: None,
            owner: hub::own_name(),
            queue: QueueLife::Durable,
            limits: Limits {
                lease: LEASE,
                ..Limits::default()
            },
        }
    }

    pub(crate) async fn hub(&self) -> Hub {
        Hub::open(self.config()).await.unwrap()
    }

    /// How often the agent was started.
    pub(crate) fn n_starts(&self) -> usize {
        let starts = fs::read_to_string(self.dir.path().join("agent.starts"));
        starts.unwrap_or_default().lines().count()
    }

    pub(crate) fn submit(&self, engine: &str, prompt: &str) -> Submit {
        Submit {
            engine: Some(engine.to_owned()),
            cwd: Some(self.dir.path().to_owned()),
            ..Submit::new(prompt)
        }
    }

    pub(crate) fn submit_to(&self, session: &SessionId<'_>, prompt: &str) -> Submit {
        Submit {
            target: Target::Session(session.to_string()),
            ..Submit::new(prompt)
        }
    }

    /// Waits until the journal is as wanted.
    pub(crate) async fn until<T>(
        &self,
        session: &SessionId<'static>,
        is_so: impl AsyncFnMut(&dyn Journal) -> Option<T>,
    ) -> T {
        until(&*self.journal, session, is_so).await
    }

    /// How the first `n` runs ended, once they have.
    pub(crate) async fn outcomes(&self, session: &SessionId<'static>, n: usize) -> Vec<Outcome> {
        outcomes(&*self.journal, session, n).await
    }

    pub(crate) async fn runs(&self, session: &SessionId<'_>) -> Vec<Run> {
        let mut runs = self.journal.runs(session, None, 100).await.unwrap();
        runs.reverse();
        runs
    }

    /// Until a run of the session is open.
    pub(crate) async fn running(&self, session: &SessionId<'static>) {
        self.until(session, async |journal| {
            let runs = journal.runs(session, None, 1).await.unwrap();
            runs.first().filter(|it| it.end.is_none()).map(|_| ())
        })
        .await
    }

    /// Every line of a session.
    pub(crate) async fn lines(&self, session: &SessionId<'_>) -> Vec<String> {
        lines(&*self.journal, session).await
    }

    /// Checks that events are numbered in order, and that nothing is opened twice or left open.
    pub(crate) async fn check(&self, session: &SessionId<'_>) {
        let lines = self.lines(session).await;
        let (mut items, mut open, mut run) = (Vec::new(), Vec::new(), None);
        for (line, seq) in lines.iter().zip(1..) {
            let event = Event::from_json(line).unwrap();
            assert_eq!((event.seq, &event.session), (seq, session));
            match &event.body {
                model::Body::RunStarted(_) => {
                    assert_eq!(run, None);
                    run = event.run.map(model::RunId::into_owned);
                }
                model::Body::RunEnded(_) => {
                    assert_eq!(run.take(), event.run.map(model::RunId::into_owned));
                    assert_eq!(open, Vec::<String>::new());
                }
                model::Body::ItemOpened(item) => {
                    assert!(!items.contains(&item.id().to_string()), "{line}");
                    items.push(item.id().to_string());
                    open.push(item.id().to_string());
                }
                model::Body::ItemClosed(closed) => {
                    open.retain(|it| it != closed.item.id().as_str())
                }
                _ => (),
            }
        }
        assert_eq!(run, None);
    }
}

/// Every line of a session.
pub(crate) async fn lines(journal: &dyn Journal, session: &SessionId<'_>) -> Vec<String> {
    let read = Read {
        after: 0,
        deltas: Deltas::Keep,
        max_events: u32::MAX,
        max_bytes: usize::MAX,
    };
    let page = journal.read(session, read).await.unwrap();
    let lines = page.events.iter().map(|it| it.line.to_vec());
    lines.map(|it| String::from_utf8(it).unwrap()).collect()
}

/// Waits until a journal is as wanted.
async fn until<T>(
    journal: &dyn Journal,
    session: &SessionId<'static>,
    mut is_so: impl AsyncFnMut(&dyn Journal) -> Option<T>,
) -> T {
    let mut watch = journal.watch(Scope::Session(session.clone()));
    let waiting = async {
        while watch.changed().await {
            if let Some(found) = is_so(journal).await {
                return found;
            }
        }
        panic!("the journal was closed");
    };
    timeout(PATIENCE, waiting).await.expect("it never happened")
}

/// How the first `n` runs ended, once they have.
pub(crate) async fn outcomes(
    journal: &dyn Journal,
    session: &SessionId<'static>,
    n: usize,
) -> Vec<Outcome> {
    until(journal, session, async |journal| {
        let mut runs = journal.runs(session, None, 100).await.unwrap();
        runs.reverse();
        let ends: Vec<_> = runs.iter().filter_map(|it| it.end).collect();
        (ends.len() >= n).then(|| ends.iter().map(|it| it.outcome).collect())
    })
    .await
}
