//! A recording for somebody who looks at it, with and without a pager.

use crate::program::{Folder, event, fixture, run, small_run};

#[test]
fn a_pipe_gets_the_plain_transcript() {
    let recording = fixture("claude/text.jsonl");
    let shown = run(&["show", "--from", "claude", &recording], b"");
    let converted = run(
        &["convert", "--from", "claude", "--to", "text", &recording],
        b"",
    );
    assert_eq!(shown, converted);
    assert!(shown.stdout.contains("done in"), "{}", shown.stdout);
}

#[test]
fn stdin_is_shown_too() {
    for args in [
        &["show", "--from", "linkspan", "-"][..],
        &["show", "--from", "linkspan"],
    ] {
        let ran = run(args, small_run("completed").as_bytes());
        assert_eq!(ran.shown(), "Done ✓\n\n✓ done\nexit 0\n", "{args:?}");
    }
}

#[test]
fn mistakes_have_a_hint() {
    assert_eq!(
        run(&["show", "--from", "claude", "/no/such/file"], b"").shown(),
        "linkspan: cannot read `/no/such/file`: No such file or directory\n\n\
         hint: check the path; `-` reads stdin\nexit 3\n"
    );
    let ran = run(&["show", "--from", "cluade", "-"], b"");
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("did you mean `claude`?"),
        "{}",
        ran.stderr
    );
}

#[cfg(target_os = "linux")]
mod on_a_terminal {
    use std::process::Stdio;
    use std::thread;

    use super::*;
    use crate::program::linkspan;
    use crate::terminal::{seen, terminal};

    /// What a terminal shows, and how the program ended.
    fn shown(args: &[&str], pager: Option<&str>) -> (String, Option<i32>) {
        let (ours, theirs) = terminal();
        let watcher = thread::spawn(move || seen(ours));
        let mut command = linkspan(args);
        match pager {
            Some(pager) => command.env("PAGER", pager),
            None => command.env_remove("PAGER"),
        };
        let stderr = theirs.try_clone().unwrap();
        let status = command
            .stdin(Stdio::null())
            .stdout(theirs)
            .stderr(stderr)
            .status();
        drop(command);
        (watcher.join().unwrap(), status.unwrap().code())
    }

    fn recording() -> (Folder, String) {
        let folder = Folder::new(&format!("show-{:?}", thread::current().id()));
        let path = folder.file("run.jsonl", &small_run("completed"));
        (folder, path)
    }

    #[test]
    fn the_pager_of_the_user_gets_the_transcript() {
        let (_folder, path) = recording();
        let args = ["show", "--from", "linkspan", "--color", "never", &path];
        let (text, code) = shown(&args, Some("sed 's/^/page: /'"));
        assert_eq!(text, "page: Done ✓\r\npage: \r\npage: ✓ done\r\n");
        assert_eq!(code, Some(0));
    }

    #[test]
    fn no_pager_means_none() {
        let (_folder, path) = recording();
        let args = ["show", "--from", "linkspan", "--color", "never", &path];
        let plain = "Done ✓\r\n\r\n✓ done\r\n".to_owned();
        let flag = [&args[..], &["--no-pager"]].concat();
        assert_eq!(
            shown(&flag, Some("sed 's/^/page: /'")),
            (plain.clone(), Some(0))
        );
        for pager in ["", "cat"] {
            assert_eq!(shown(&args, Some(pager)), (plain.clone(), Some(0)));
        }
    }

    #[test]
    fn a_terminal_has_colour_also_through_a_pager() {
        let (_folder, path) = recording();
        let args = ["show", "--from", "linkspan", &path];
        assert!(shown(&args, Some("sed ''")).0.contains('\u{1b}'));
    }

    #[test]
    fn a_missing_pager_is_only_a_warning() {
        let (_folder, path) = recording();
        let args = ["show", "--from", "linkspan", "--color", "never", &path];
        let (text, code) = shown(&args, Some("/no/such/pager -x"));
        assert_eq!(
            text,
            "linkspan: cannot start the pager `/no/such/pager -x`: No such file or directory, \
             printing without it\r\nDone ✓\r\n\r\n✓ done\r\n"
        );
        assert_eq!(code, Some(0));
    }

    #[test]
    fn a_pager_that_is_left_early_is_no_error() {
        let folder = Folder::new("show-left");
        let text = "x".repeat(100_000);
        let notice = format!(r#"{{"level":"info","code":"status","text":"{text}"}}"#);
        let path = folder.file("run.jsonl", &event(1, "notice.raised", &notice).repeat(30));
        let args = ["show", "--from", "linkspan", &path];
        assert_eq!(shown(&args, Some("true")), (String::new(), Some(0)));
    }
}
