//! Text as it streams: who prints, who waits, and what is shown of a call that runs.

use super::*;

#[test]
fn a_call_is_named_again_when_something_came_between() {
    let ls = |result| tool("t", "Bash", class(ToolKind::Shell, "ls"), result);
    let pwd = |result| tool("u", "Bash", class(ToolKind::Shell, "pwd"), result);
    let events = [
        started(),
        opened(ls(None)),
        opened(pwd(None)),
        closed(Status::Ok, ls(Some("a"))),
        closed(Status::Ok, pwd(Some("/"))),
        ended(Outcome::Completed, None),
    ];
    check(
        &LIVE,
        &events,
        expect![[r#"
        ● Bash  ls

        ● Bash  pwd

        ● Bash  ls
          ⎿ a

        ● Bash  pwd
          ⎿ /

        ✓ done in 3.2s
    "#]],
    );
    check(
        &FILE,
        &events,
        expect![[r#"
        ● Bash  ls
          ⎿ a

        ● Bash  pwd
          ⎿ /

        ✓ done in 3.2s
    "#]],
    );
}

#[test]
fn others_wait_for_the_current_speaker() {
    let events = [
        started(),
        opened(message("m", Role::Assistant, "")),
        delta("m", Channel::Text, "Hello "),
        notice(Level::Warning, "meanwhile"),
        delta("m", Channel::Text, "world\n\n"),
        closed(Status::Ok, message("m", Role::Assistant, "Hello world\n\n")),
        ended(Outcome::Completed, None),
    ];
    check(
        &LIVE,
        &events,
        expect![[r#"
        Hello world

        ⚠ meanwhile

        ✓ done in 3.2s
    "#]],
    );
}

#[test]
fn an_idle_speaker_yields_to_others() {
    let events = [
        started(),
        opened(message("m", Role::Assistant, "")),
        delta("m", Channel::Text, "\n"),
        notice(Level::Warning, "first"),
        delta("m", Channel::Text, "then me"),
        closed(Status::Ok, message("m", Role::Assistant, "\nthen me")),
    ];
    check(
        &LIVE,
        &events,
        expect![[r#"
        ⚠ first

        then me

        ? cut off
    "#]],
    );
}

#[test]
fn a_full_queue_interrupts_the_speaker() {
    let long = "w".repeat(70_000);
    let events = [
        started(),
        opened(message("m", Role::Assistant, "")),
        delta("m", Channel::Text, "before "),
        notice(Level::Warning, &long),
        delta("m", Channel::Text, "after"),
        notice(Level::Warning, "last"),
        closed(Status::Ok, message("m", Role::Assistant, "before after")),
        ended(Outcome::Completed, None),
    ];
    let text = written(&LIVE, &events).replace(&long, "www");
    expect![[r#"
        before

        ⚠ www

        after

        ⚠ last

        ✓ done in 3.2s
    "#]]
    .assert_eq(&text);
}

#[test]
fn streamed_text_equals_the_whole_text() {
    let pieces = [
        "a", "b", " ", "\n", "\r", "\r\n", "\t", "é", "\x1b[2J", "\u{202e}", "\n\n", "  ",
    ];
    let mut random: u64 = 0x2545_f491_4f6c_dd1d;
    let mut below = |n: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % n as u64) as usize
    };
    for _ in 0..5_000 {
        let words: Vec<&str> = (0..below(12))
            .map(|_| pieces[below(pieces.len())])
            .collect();
        let whole = words.concat();
        let item = |text| message("m", Role::Assistant, text);
        let mut events = vec![started(), opened(item(""))];
        events.extend(words.iter().map(|it| delta("m", Channel::Text, it)));
        events.push(closed(Status::Ok, item(&whole)));
        events.push(ended(Outcome::Completed, None));
        assert_eq!(
            written(&LIVE, &events),
            written(&FILE, &events),
            "{whole:?}"
        );
    }
}
