//! What the bridge says about asks and the ends of runs.

use std::borrow::Cow;

use expect_test::{Expect, expect};
use model::{
    AskKind, Basis, Decision, ItemId, Origin, Outcome, RunId, Scope, SessionId, Text, Tokens, Usage,
};

use super::*;

fn event(seq: u64, body: Body<'_>) -> Event<'_> {
    Event {
        seq,
        at: None,
        session: SessionId::new("s1"),
        run: Some(RunId::new("r1")),
        engine: Cow::Borrowed("claude"),
        path: Cow::Borrowed(&[]),
        origin: Origin::Agent,
        frame: None,
        native: None,
        why: None,
        extra: Cow::Borrowed(&[]),
        body,
    }
}

fn ask(id: &'static str) -> Body<'static> {
    Body::AskOpened(Ask {
        id: AskId::new(id),
        kind: AskKind::Permission,
        item: Some(ItemId::new("toolu_1")),
        tool: Cow::Borrowed("Bash"),
        title: Text::new("ls"),
        description: None,
        input: Some(Raw::parse(r#"{"command":"ls"}"#.to_owned())),
        suggestions: None,
        deadline: None,
    })
}

fn settled(id: &'static str) -> Body<'static> {
    Body::AskSettled(AskSettled {
        id: AskId::new(id),
        decision: Decision::Allowed,
        message: Some(Text::new("fine")),
        input: None,
        remembered: None,
    })
}

fn check(base: Option<&str>, bodies: Vec<Body<'_>>, expect: Expect) {
    let base = base.map(str::to_owned);
    let mut writer = BridgeWriter::new(BridgeConfig { base });
    let mut out = Vec::new();
    for (at, body) in bodies.into_iter().enumerate() {
        writer.event(&event(at as u64 + 1, body), &mut out);
    }
    expect.assert_eq(&String::from_utf8(out).unwrap());
}

#[test]
fn an_ask_is_named_by_the_event_that_asked_until_it_is_settled() {
    check(
        Some("http://h"),
        vec![ask("q1"), ask("q2"), settled("q1"), settled("q1")],
        expect![[r#"
            {"type":"bridge.ask","askId":"s1:1","seq":1,"runId":"r1","itemId":"toolu_1","kind":"permission","tool":"Bash","title":"ls","description":null,"command":"ls","input":{"command":"ls"},"suggestions":null,"deadline":null,"answer":{"page":"http://h/#/s/s1","url":"http://h/api/asks/s1:1","decisions":["allow","allow_always","deny"],"control":{"control":"ask.settle","askId":"s1:1","decision":"allow"}}}
            {"type":"bridge.ask","askId":"s1:2","seq":2,"runId":"r1","itemId":"toolu_1","kind":"permission","tool":"Bash","title":"ls","description":null,"command":"ls","input":{"command":"ls"},"suggestions":null,"deadline":null,"answer":{"page":"http://h/#/s/s1","url":"http://h/api/asks/s1:2","decisions":["allow","allow_always","deny"],"control":{"control":"ask.settle","askId":"s1:2","decision":"allow"}}}
            {"type":"bridge.ask_settled","askId":"s1:1","decision":"allowed","by":"agent","why":null,"message":"fine","input":null}
        "#]],
    );
}

#[test]
fn without_a_server_an_ask_has_no_address() {
    check(
        None,
        vec![ask("q1")],
        expect![[r#"
            {"type":"bridge.ask","askId":"s1:1","seq":1,"runId":"r1","itemId":"toolu_1","kind":"permission","tool":"Bash","title":"ls","description":null,"command":"ls","input":{"command":"ls"},"suggestions":null,"deadline":null,"answer":{"decisions":["allow","allow_always","deny"],"control":{"control":"ask.settle","askId":"s1:1","decision":"allow"}}}
        "#]],
    );
}

/// Codex prints what the whole thread took, and its ThreadEvents keep that.
#[test]
fn the_end_of_a_run_has_its_own_counts() {
    let tokens = Tokens {
        input: 3,
        cache_read: 4,
        cache_write: 0,
        output: Some(5),
        reasoning: None,
    };
    let mut usage = Usage::new(Scope::Run, Basis::Delta, tokens);
    usage.cost_usd = Some(0.25);
    let total = r#"{"input_tokens":70,"cached_input_tokens":40,"output_tokens":50}"#;
    usage.detail = Some(Raw::parse(total.to_owned()));
    let mut ended = RunEnded::new(Outcome::Completed, None);
    ended.answer = Some(Text::new("done"));
    ended.usage = Some(usage);
    ended.session_cost_usd = Some(1.5);
    check(
        None,
        vec![Body::RunEnded(ended)],
        expect![[r#"
            {"type":"bridge.run_ended","runId":"r1","outcome":"completed","answer":"done","error":null,"usage":{"input_tokens":3,"cached_input_tokens":4,"cache_write_input_tokens":0,"output_tokens":5,"reasoning_output_tokens":0},"usage_scope":"run","cost_usd":0.25,"session_cost_usd":1.5,"stopReason":null,"denials":[]}
        "#]],
    );
}
