//! A transcript for people in a terminal or a text file: prompts, answers and actions in reading order.
//!
//! A file gets each tool call in one piece, where it ended. Live output shows a call when it starts
//! and text as it streams; other agents wait until the current speaker is done. All foreign text
//! passes `display_safe`, in [`page::SafeText`]. Long outputs are cut after their first lines, and
//! that is counted.

mod calls;
mod page;
mod speech;
mod turnstile;

use std::collections::HashMap;

use model::{
    AskSettled, Cause, Decision, Event, Level, Losses, Other, Outcome, Plan, PlanEntry, PlanStatus,
    RunEnded, Status, Subagent, Tool, ToolKind, Writer,
};

use self::page::{
    BOLD, BlockKind, CYAN, DIM, GREEN, MAGENTA, PLAIN, RED, SafeText, TerminalPage, YELLOW,
};
use self::speech::{Speech, SpeechStyle};
use self::turnstile::{Delivery, Turnstile};
use super::WriterConfig;
use super::asks::OpenAsk;
use super::labels::{compact, label, size};
use super::sources::SourceLink;
use super::summary::SessionSummary;
use super::transcript::{
    Author, ClosedCall, Layout, OpenCall, Picture, Place, PlanDisplay, RunEnd, RunStart,
    SessionChange, ShownPlan, Transcript,
};

const ASSISTANT: SpeechStyle = SpeechStyle {
    heading: None,
    mark: "",
    indent: "",
    style: PLAIN,
    max_lines: usize::MAX,
};
const THINKING: SpeechStyle = SpeechStyle {
    heading: Some("∴ thinking"),
    indent: "  ",
    style: DIM,
    ..ASSISTANT
};
const USER: SpeechStyle = SpeechStyle {
    mark: "› ",
    indent: "  ",
    style: CYAN,
    ..ASSISTANT
};
/// A prompt from another agent.
const MACHINE: SpeechStyle = SpeechStyle {
    style: DIM,
    max_lines: calls::MAX_LINES,
    ..USER
};
/// What an agent's program writes to its model.
const HARNESS: SpeechStyle = SpeechStyle {
    mark: "» ",
    ..MACHINE
};

/// A transcript whose text is shown as it streams.
#[derive(Clone, Debug)]
pub(crate) struct TextTranscript {
    transcript: Transcript<TextLayout>,
    turnstile: Turnstile,
}

#[derive(Clone, Debug)]
pub(crate) struct TextLayout {
    live: bool,
    /// The text that is being written was shown as it streamed.
    is_streamed: bool,
    page: TerminalPage,
    losses: Losses,
}

impl TextTranscript {
    pub(crate) fn new(config: &WriterConfig) -> Self {
        let layout = TextLayout {
            live: config.live,
            is_streamed: false,
            page: TerminalPage::new(config.color),
            losses: Losses::default(),
        };
        Self {
            transcript: Transcript::new(layout),
            turnstile: Turnstile::default(),
        }
    }
}

impl Writer for TextTranscript {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let layout = &mut self.transcript.layout;
        let delivery = self.turnstile.deliver(event, &mut layout.page, out);
        if delivery == Delivery::Streamed {
            return;
        }
        layout.is_streamed = delivery == Delivery::AlreadyStreamed;
        if let Some(mut waiting) = self.turnstile.take_waiting() {
            self.transcript.event(event, &mut waiting);
            let page = &mut self.transcript.layout.page;
            self.turnstile.wait(waiting, page, out);
        } else {
            self.transcript.event(event, out);
            if self.transcript.layout.live {
                self.turnstile.offer(event);
            }
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.turnstile.clear(&mut self.transcript.layout.page, out);
        self.transcript.end(out);
    }

    fn losses(&self) -> &Losses {
        self.transcript.losses()
    }
}

impl TextLayout {
    /// A whole text at once.
    fn write_speech(&mut self, style: SpeechStyle, text: &str, place: &mut Place<'_>) {
        let mut speech = Speech::new(style, place.path);
        speech.push(text, &mut self.page, place.out);
        if speech.finish(&mut self.page, place.out) {
            self.losses.count("cut text");
        }
    }

    /// A line of our own between the blocks.
    fn remark(&mut self, text: &str, out: &mut Vec<u8>) {
        self.page.begin(BlockKind::Notice, &mut Place::top(out));
        self.page.line("", DIM, text, out);
    }

    fn resume_hint(&mut self, hint: &str, out: &mut Vec<u8>) {
        if !self.page.is_last(&BlockKind::End) {
            self.page.begin(BlockKind::End, &mut Place::top(out));
        }
        self.page.line("  ", DIM, hint, out);
    }

    fn plan_entry(&self, text: &str, status: PlanStatus, out: &mut Vec<u8>) {
        let (mark, style) = match status {
            PlanStatus::Pending => ('☐', PLAIN),
            PlanStatus::InProgress => ('◐', BOLD),
            PlanStatus::Completed => ('☑', DIM),
        };
        let line = format!("{mark} {}", text.replace('\n', " "));
        self.page.line("  ", style, line, out);
    }

    fn verdict(&mut self, end: &RunEnd<'_>, out: &mut Vec<u8>) {
        let style = match end.outcome {
            Outcome::Completed => GREEN,
            Outcome::Failed | Outcome::Limit => RED,
            Outcome::Aborted | Outcome::Refused | Outcome::Lost => YELLOW,
        };
        let verdict = end.verdict;
        let facts = end.facts.join(" · ");
        if let Some(reason) = &end.reason {
            self.reason(style, &format!("{verdict}: {reason}"), out);
            if !facts.is_empty() {
                self.page.line("  ", DIM, facts, out);
            }
            return;
        }
        self.page.start("", out);
        self.page.put(style, verdict, out);
        if !facts.is_empty() {
            self.page.put(DIM, format!(" · {facts}"), out);
        }
        self.page.end_line(out);
    }

    fn question(&mut self, ask: &OpenAsk, place: &mut Place<'_>) {
        self.page.begin(ask_block(ask), place);
        let safe = SafeText::from(&*ask.question);
        // In full, because a decision may depend on it.
        for (n, line) in safe.lines().enumerate() {
            self.page.start(if n == 0 { "" } else { "  " }, place.out);
            self.page
                .put(YELLOW, if n == 0 { "? " } else { "" }, place.out);
            self.page.put(YELLOW, line.trim_end(), place.out);
            self.page.end_line(place.out);
        }
    }
}

impl Layout for TextLayout {
    fn losses(&self) -> &Losses {
        &self.losses
    }

    fn losses_mut(&mut self) -> &mut Losses {
        &mut self.losses
    }

    fn is_live(&self) -> bool {
        self.live
    }

    fn session(&mut self, session: &SessionSummary, change: SessionChange, out: &mut Vec<u8>) {
        match change {
            SessionChange::Update(news) => return self.remark(&format!("· now {news}"), out),
            SessionChange::Other { resume: Some(hint) } => self.resume_hint(&hint, out),
            SessionChange::Other { resume: None } | SessionChange::First => (),
        }
        self.page.begin(BlockKind::Header, &mut Place::top(out));
        self.page.line("", BOLD, session.headline(), out);
    }

    fn run_started(&mut self, run: &RunStart, out: &mut Vec<u8>) {
        match run.cause {
            Cause::Prompt => (),
            Cause::WakeUp => self.remark("· woken by background work", out),
        }
    }

    fn run_ended(&mut self, end: &RunEnd<'_>, _ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        if let Some(answer) = &end.answer {
            self.write_speech(ASSISTANT, answer, &mut Place::top(out));
        }
        self.page.begin(BlockKind::End, &mut Place::top(out));
        self.verdict(end, out);
    }

    fn prose(&mut self, author: Author, text: &str, place: &mut Place<'_>) {
        let style = match author {
            Author::Prompt => USER,
            Author::Answer => ASSISTANT,
            Author::Thought => THINKING,
            Author::Task => MACHINE,
            Author::Harness => HARNESS,
        };
        if !self.is_streamed {
            self.write_speech(style, text, place);
        }
    }

    fn attachment(&mut self, text: &str, place: &mut Place<'_>) {
        self.write_speech(MACHINE, text, place);
    }

    fn picture(&mut self, picture: &Picture<'_>, place: &mut Place<'_>) {
        let text = match picture {
            Picture::Data { media_type, data } => {
                self.losses.count("image");
                format!("[{media_type}, {}]", size(data.len() / 4 * 3))
            }
            Picture::Url(url) => format!("[image {url}]"),
        };
        self.write_speech(MACHINE, &text, place);
    }

    fn sources(&mut self, sources: &[SourceLink], place: &mut Place<'_>) {
        self.page.begin(BlockKind::Text, place);
        self.page.line("", DIM, "sources", place.out);
        for source in sources {
            let line = match &source.title {
                Some(title) => format!("{title}  {}", source.place),
                None => source.place.clone(),
            };
            self.page.line("  ", DIM, line, place.out);
        }
    }

    fn hidden_reasoning(&mut self, text: &str, place: &mut Place<'_>) {
        let style = SpeechStyle {
            mark: "∴ ",
            ..MACHINE
        };
        self.write_speech(style, text, place);
    }

    fn compaction(&mut self, label: &str, summary: &str, place: &mut Place<'_>) {
        self.page.begin(BlockKind::Text, place);
        self.page.line("", MAGENTA, format!("⇣ {label}"), place.out);
        if !summary.is_empty() {
            self.note(summary, place.out);
        }
    }

    fn other(&mut self, other: &Other<'_>, place: &mut Place<'_>) {
        self.page.begin(BlockKind::Text, place);
        self.page
            .line("", PLAIN, format!("◦ {}", other.name), place.out);
        let text = match &other.text {
            Some(text) => text.to_str().into_owned(),
            None => compact(&other.data),
        };
        self.note(&text, place.out);
    }

    fn notice(&mut self, level: Level, text: &str, place: &mut Place<'_>) {
        let (mark, style) = match level {
            Level::Debug | Level::Info => ("· ", DIM),
            Level::Warning => ("⚠ ", YELLOW),
            Level::Error => ("✗ ", RED),
        };
        self.page.begin(BlockKind::Notice, place);
        self.marked(mark, style, text, place.out);
    }

    /// Announces a call once its input is known, if it has to be known before it ends.
    fn call_known(&mut self, tool: &Tool<'_>, call: &mut OpenCall, place: &mut Place<'_>) {
        // The agent that this call starts is named after it.
        let has_followers = tool.class.kind == ToolKind::Task;
        let is_wanted = has_followers || self.live && tool.class.kind != ToolKind::Todo;
        if !is_wanted || tool.input.is_none() {
            return;
        }
        if has_followers {
            self.page.name_agent(&tool.id, &label(tool));
        }
        if !call.is_announced {
            call.is_announced = true;
            self.announce(tool, None, place);
        }
    }

    fn call_closed(&mut self, closed: ClosedCall<'_>, place: &mut Place<'_>) {
        let ClosedCall {
            tool,
            status,
            open,
            mut took,
        } = closed;
        // A background agent writes under its name after its call has ended.
        if !open.in_background {
            self.page.forget_agent(&tool.id);
        }
        let is_ok = status == Status::Ok;
        if tool.class.kind == ToolKind::Todo && is_ok {
            // The plan shows what the call has changed.
            return self.losses.count("todo call");
        }
        if is_ok && open.is_announced && calls::speaks_for_itself(tool) {
            return self.losses.count("edit result");
        }
        if !open.is_announced {
            self.announce(tool, took.take(), place);
        } else if !self.page.is_under(&tool.id) {
            self.remind(tool, took.take(), place);
        }
        self.page.resume(calls::call_block(&tool.id), place.path);
        for decision in &open.decisions {
            if status == Status::Denied && is_shown(decision, tool) {
                continue;
            }
            let line = format!("→ {decision}");
            self.page.line("  ", YELLOW, line, place.out);
        }
        if is_ok && calls::speaks_for_itself(tool) {
            return self.losses.count("edit result");
        }
        let text = outcome(open, tool, status, &mut self.losses);
        let end = calls::CallEnd {
            status,
            exit_code: tool.class.exit_code,
            took,
        };
        self.ending(&end, &text, place.out);
    }

    fn agent_closed(&mut self, agent: &Subagent<'_>, status: Status, place: &mut Place<'_>) {
        if agent.background {
            self.agent(agent, status, place);
        }
        self.page.forget_agent(&agent.call);
    }

    fn ask_opened(&mut self, ask: &OpenAsk, place: &mut Place<'_>) {
        if self.live {
            self.question(ask, place);
        }
    }

    /// Writes the answer, under the question if that is what was written last.
    fn ask_settled(&mut self, ask: &OpenAsk, settled: &AskSettled<'_>, place: &mut Place<'_>) {
        if !self.page.is_last(&ask_block(ask)) {
            self.question(ask, place);
        }
        self.page.resume(ask_block(ask), place.path);
        let style = match settled.decision {
            Decision::Allowed | Decision::AllowedAlways => GREEN,
            Decision::Denied => RED,
            Decision::Withdrawn | Decision::Lost => YELLOW,
        };
        self.page.start("  ", place.out);
        self.page.put(DIM, "→ ", place.out);
        self.page.put(style, ask.decision(settled), place.out);
        self.page.end_line(place.out);
    }

    /// Writes what is new in a plan.
    fn plan(
        &mut self,
        plan: &Plan<'_>,
        _shown: PlanDisplay,
        before: Option<&ShownPlan>,
        place: &mut Place<'_>,
    ) {
        let before = before.map(|it| it.entries.iter().cloned().collect());
        // A long plan is repeated with every step: only what is new is shown.
        let before: HashMap<String, PlanStatus> = before.unwrap_or_default();
        let is_new = |it: &&PlanEntry<'_>| before.get(&*it.text.to_str()) != Some(&it.status);
        let news: Vec<_> = plan.entries.iter().filter(is_new).collect();
        if news.is_empty() {
            return;
        }
        let is_done = |it: &&PlanEntry<'_>| it.status == PlanStatus::Completed;
        let n_done = plan.entries.iter().filter(is_done).count();
        let heading = format!("▤ plan {n_done}/{}", plan.entries.len());
        self.page.begin(BlockKind::Text, place);
        self.page.line("", MAGENTA, heading, place.out);
        for entry in news {
            self.plan_entry(&entry.text.to_str(), entry.status, place.out);
        }
    }

    fn finish(&mut self, resume: Option<&str>, out: &mut Vec<u8>) {
        if let Some(hint) = resume {
            self.resume_hint(hint, out);
        }
    }
}

fn ask_block(ask: &OpenAsk) -> BlockKind {
    BlockKind::Ask(ask.id.clone(), ask.call.clone())
}

/// What to show under the headline of a call.
fn outcome(open: OpenCall, tool: &Tool<'_>, status: Status, losses: &mut Losses) -> String {
    let is_ok = status == Status::Ok;
    match open.report {
        Some(report) if is_ok => report,
        None if is_ok && open.in_background => "goes on in the background".to_owned(),
        Some(_) | None if tool.result.is_none() => open.printed,
        Some(_) | None => calls::result_text(tool, losses),
    }
}

/// True when the result repeats the denial and its reason.
fn is_shown(decision: &str, tool: &Tool<'_>) -> bool {
    let Some(reason) = decision.strip_prefix("denied") else {
        return false;
    };
    let result = calls::result_text(tool, &mut Losses::default());
    result.contains(reason.trim_start_matches(": "))
}

#[cfg(test)]
mod tests;
