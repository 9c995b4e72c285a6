//! Hostile sequences by name, and random ones: none of them reaches a terminal as an order.

use expect_test::expect;

use super::{CharClass, display_safe, sign, visible};

/// What terminals have been made to do by text that was merely shown.
const HOSTILE: &[(&str, &str)] = &[
    ("NUL", "a\0b"),
    ("SOH", "\x01"),
    ("STX", "\x02"),
    ("ETX, as Ctrl-C", "\x03"),
    ("EOT, as Ctrl-D", "\x04"),
    ("ENQ, answerback", "\x05"),
    ("ACK", "\x06"),
    ("BEL", "\x07"),
    ("BS, overwrite the last letter", "rm -rf x\x08\x08y"),
    ("VT", "a\x0bb"),
    ("FF, clears some screens", "a\x0cb"),
    ("CR, overwrite the line", "evil\rgood"),
    ("CR at the end", "a\r"),
    ("CR CR LF", "a\r\r\nb"),
    ("CR LF", "a\r\nb"),
    ("LF CR", "a\n\rb"),
    ("SO, shift to the other character set", "\x0eabc\x0f"),
    ("DLE", "\x10"),
    ("XON and XOFF, freeze the terminal", "\x11\x13"),
    ("DC2 and DC4", "\x12\x14"),
    ("NAK", "\x15"),
    ("SYN", "\x16"),
    ("ETB", "\x17"),
    ("CAN, aborts a sequence", "\x18"),
    ("EM", "\x19"),
    ("SUB, as Ctrl-Z", "\x1a"),
    ("FS, GS, RS, US", "\x1c\x1d\x1e\x1f"),
    ("DEL", "a\x7fb"),
    ("ESC alone", "\x1b"),
    ("ESC at the end", "abc\x1b"),
    ("ESC ESC", "\x1b\x1b[A"),
    ("SGR red", "\x1b[31mred\x1b[0m"),
    ("SGR conceal", "\x1b[8mhidden\x1b[28m"),
    ("SGR black on black", "\x1b[30;40mhidden"),
    ("SGR with colons", "\x1b[38:2::1:2:3m"),
    ("SGR without end", "\x1b[31"),
    ("CSI 2J, clear", "\x1b[2J"),
    ("CSI 3J, clear scrollback", "\x1b[3J"),
    ("CSI K, clear line", "\x1b[2K"),
    ("CSI H, home", "\x1b[H"),
    ("CSI A, up", "\x1b[99A"),
    ("CSI C, right", "\x1b[99C"),
    ("CSI G, column", "\x1b[1G"),
    ("CSI f, position", "\x1b[1;1f"),
    ("CSI L, insert lines", "\x1b[9L"),
    ("CSI M, delete lines", "\x1b[9M"),
    ("CSI P, delete characters", "\x1b[9P"),
    ("CSI X, erase characters", "\x1b[9X"),
    ("CSI S and T, scroll", "\x1b[5S\x1b[5T"),
    ("CSI b, repeat a character", "A\x1b[999999999b"),
    ("CSI r, scroll region", "\x1b[1;1r"),
    ("CSI s and u, save and restore", "\x1b[s\x1b[u"),
    ("CSI 5n, status report", "\x1b[5n"),
    ("CSI 6n, cursor report", "\x1b[6n"),
    ("CSI c, device attributes", "\x1b[c"),
    ("CSI > c, secondary attributes", "\x1b[>c"),
    ("CSI = c, tertiary attributes", "\x1b[=c"),
    ("CSI x, terminal parameters", "\x1b[1x"),
    ("CSI > q, version report", "\x1b[>0q"),
    ("CSI 21t, title report", "\x1b[21t"),
    ("CSI 20t, icon report", "\x1b[20t"),
    ("CSI 8t, resize", "\x1b[8;1;1t"),
    ("CSI 2t, iconify", "\x1b[2t"),
    ("CSI 22t and 23t, title stack", "\x1b[22t\x1b[23t"),
    ("CSI ! p, soft reset", "\x1b[!p"),
    ("CSI i, print the screen", "\x1b[i"),
    ("CSI 5i, printer on", "\x1b[5i"),
    ("CSI ? 5i, autoprint", "\x1b[?5i"),
    ("CSI y, self test", "\x1b[2;8y"),
    ("CSI q, keyboard lights", "\x1b[3q"),
    ("DECSCUSR, cursor shape", "\x1b[5 q"),
    ("DECSCA, protect", "\x1b[1\"q"),
    ("DECRQM, mode request", "\x1b[?1049$p"),
    ("DECSLRM, margins", "\x1b[?69h\x1b[2;3s"),
    ("hide the cursor", "\x1b[?25l"),
    ("alternate screen", "\x1b[?1049h"),
    ("mouse reports", "\x1b[?1003h\x1b[?1006h"),
    ("focus reports", "\x1b[?1004h"),
    ("bracketed paste off", "\x1b[?2004l"),
    ("132 columns", "\x1b[?3h"),
    ("reverse screen", "\x1b[?5h"),
    ("no autowrap", "\x1b[?7l"),
    ("synchronised output", "\x1b[?2026h"),
    ("insert mode", "\x1b[4h"),
    ("line feed mode", "\x1b[20h"),
    ("modify other keys", "\x1b[>4;2m"),
    ("kitty keyboard", "\x1b[>31u"),
    ("CSI with a control inside", "\x1b[3\x071m"),
    (
        "CSI with many parameters",
        "\x1b[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1H",
    ),
    ("OSC 0, title", "\x1b]0;owned\x07"),
    ("OSC 1, icon name", "\x1b]1;owned\x07"),
    ("OSC 2, title with ST", "\x1b]2;owned\x1b\\"),
    ("OSC 4, palette", "\x1b]4;0;rgb:ff/ff/ff\x07"),
    ("OSC 4, palette report", "\x1b]4;0;?\x07"),
    ("OSC 7, working directory", "\x1b]7;file://host/etc\x07"),
    (
        "OSC 8, hyperlink",
        "\x1b]8;;https://evil.example\x1b\\good.example\x1b]8;;\x1b\\",
    ),
    (
        "OSC 8, with an id",
        "\x1b]8;id=1;file:///etc/passwd\x07x\x1b]8;;\x07",
    ),
    ("OSC 9, notification", "\x1b]9;you have mail\x07"),
    ("OSC 9;4, progress", "\x1b]9;4;1;50\x07"),
    ("OSC 10, colour report", "\x1b]10;?\x07"),
    ("OSC 11, background", "\x1b]11;#000000\x07"),
    ("OSC 12, cursor colour", "\x1b]12;red\x07"),
    ("OSC 46, log file", "\x1b]46;/tmp/x\x07"),
    ("OSC 50, font", "\x1b]50;#1\x07"),
    ("OSC 52, write the clipboard", "\x1b]52;c;cm0gLXJmIH4=\x07"),
    ("OSC 52, read the clipboard", "\x1b]52;c;?\x07"),
    ("OSC 104, reset the palette", "\x1b]104\x07"),
    ("OSC 133, prompt marks", "\x1b]133;A\x07"),
    ("OSC 555, screenshot", "\x1b]555\x07"),
    (
        "OSC 633, editor shell integration",
        "\x1b]633;E;rm -rf ~\x07",
    ),
    ("OSC 777, notification", "\x1b]777;notify;a;b\x07"),
    (
        "OSC 1337, file",
        "\x1b]1337;File=name=eA==;inline=0:eA==\x07",
    ),
    (
        "OSC 1337, clipboard",
        "\x1b]1337;CopyToClipboard=general\x07",
    ),
    ("OSC 1337, steal focus", "\x1b]1337;StealFocus\x07"),
    ("OSC 1337, set a mark", "\x1b]1337;SetMark\x07"),
    ("OSC without end", "\x1b]0;swallows what follows"),
    ("OSC with line ends", "\x1b]0;a\nb\x07"),
    ("DCS, sixel", "\x1bPq#0;2;0;0;0#0~~\x1b\\"),
    ("DCS, DECRQSS", "\x1bP$qm\x1b\\"),
    ("DCS, termcap", "\x1bP+q544e\x1b\\"),
    ("DCS, user keys", "\x1bP0;1|17/0a\x1b\\"),
    ("DCS, tmux passthrough", "\x1bPtmux;\x1b\x1b]0;x\x07\x1b\\"),
    ("DCS, screen passthrough", "\x1bP\x1b]0;x\x07\x1b\\"),
    ("APC, kitty graphics", "\x1b_Ga=T,f=100;AAAA\x1b\\"),
    ("APC, kitty file", "\x1b_Gt=f;L2V0Yy9wYXNzd2Q=\x1b\\"),
    ("PM", "\x1b^x\x1b\\"),
    ("SOS", "\x1bXx\x1b\\"),
    ("ESC k, screen title", "\x1bkowned\x1b\\"),
    ("ESC c, full reset", "\x1bc"),
    ("ESC Z, identify", "\x1bZ"),
    ("ESC 7 and 8, save and restore", "\x1b7\x1b8"),
    ("ESC D, E, M, lines", "\x1bD\x1bE\x1bM"),
    ("ESC H, tab stop", "\x1bH"),
    ("ESC N and O, single shifts", "\x1bNa\x1bOa"),
    ("ESC ( 0, line drawing", "\x1b(0qqq\x1b(B"),
    ("ESC % @, leave UTF-8", "\x1b%@"),
    ("ESC # 8, fill the screen", "\x1b#8"),
    ("ESC # 3, double height", "\x1b#3"),
    ("ESC = and >, keypad", "\x1b=\x1b>"),
    ("ESC SP F, seven bit controls", "\x1b F"),
    ("ESC l and m, memory lock", "\x1bl\x1bm"),
    ("VT52 mode", "\x1b[?2l\x1bY  "),
    ("Tektronix mode", "\x1b[?38h"),
    ("C1 PAD", "\u{80}"),
    ("C1 NEL", "a\u{85}b"),
    ("C1 IND and RI", "\u{84}\u{8d}"),
    ("C1 DCS", "\u{90}q\u{9c}"),
    ("C1 SOS", "\u{98}x\u{9c}"),
    ("C1 DECID", "\u{9a}"),
    ("C1 CSI", "\u{9b}2J"),
    ("C1 OSC", "\u{9d}0;owned\u{9c}"),
    ("C1 PM and APC", "\u{9e}\u{9f}"),
    ("no-break space is no control", "\u{a0}"),
    ("bidi LRE", "\u{202a}"),
    ("bidi RLE", "\u{202b}"),
    ("bidi PDF", "\u{202c}"),
    ("bidi LRO", "\u{202d}"),
    ("bidi RLO, a name backwards", "photo\u{202e}gpj.exe"),
    ("bidi isolates", "\u{2066}\u{2067}\u{2068}\u{2069}"),
    (
        "bidi in code",
        "if admin\u{202e} \u{2066}// only\u{2069} \u{2066}{",
    ),
    ("dash and quotes are harmless", "“a” — b…"),
    ("emoji are harmless", "👩\u{200d}🚀 é"),
    ("tabs and line ends are harmless", "a\tb\n"),
];

#[test]
fn named_sequences_become_visible() {
    let mut shown = String::new();
    for (name, text) in HOSTILE {
        let safe = checked(text);
        shown += &format!("{name}: {}\n", safe.replace('\n', "⏎"));
    }
    expect![[r#"
        NUL: a␀b
        SOH: ␁
        STX: ␂
        ETX, as Ctrl-C: ␃
        EOT, as Ctrl-D: ␄
        ENQ, answerback: ␅
        ACK: ␆
        BEL: ␇
        BS, overwrite the last letter: rm -rf x␈␈y
        VT: a␋b
        FF, clears some screens: a␌b
        CR, overwrite the line: evil␍good
        CR at the end: a␍
        CR CR LF: a␍⏎b
        CR LF: a⏎b
        LF CR: a⏎␍b
        SO, shift to the other character set: ␎abc␏
        DLE: ␐
        XON and XOFF, freeze the terminal: ␑␓
        DC2 and DC4: ␒␔
        NAK: ␕
        SYN: ␖
        ETB: ␗
        CAN, aborts a sequence: ␘
        EM: ␙
        SUB, as Ctrl-Z: ␚
        FS, GS, RS, US: ␜␝␞␟
        DEL: a␡b
        ESC alone: ␛
        ESC at the end: abc␛
        ESC ESC: ␛␛[A
        SGR red: ␛[31mred␛[0m
        SGR conceal: ␛[8mhidden␛[28m
        SGR black on black: ␛[30;40mhidden
        SGR with colons: ␛[38:2::1:2:3m
        SGR without end: ␛[31
        CSI 2J, clear: ␛[2J
        CSI 3J, clear scrollback: ␛[3J
        CSI K, clear line: ␛[2K
        CSI H, home: ␛[H
        CSI A, up: ␛[99A
        CSI C, right: ␛[99C
        CSI G, column: ␛[1G
        CSI f, position: ␛[1;1f
        CSI L, insert lines: ␛[9L
        CSI M, delete lines: ␛[9M
        CSI P, delete characters: ␛[9P
        CSI X, erase characters: ␛[9X
        CSI S and T, scroll: ␛[5S␛[5T
        CSI b, repeat a character: A␛[999999999b
        CSI r, scroll region: ␛[1;1r
        CSI s and u, save and restore: ␛[s␛[u
        CSI 5n, status report: ␛[5n
        CSI 6n, cursor report: ␛[6n
        CSI c, device attributes: ␛[c
        CSI > c, secondary attributes: ␛[>c
        CSI = c, tertiary attributes: ␛[=c
        CSI x, terminal parameters: ␛[1x
        CSI > q, version report: ␛[>0q
        CSI 21t, title report: ␛[21t
        CSI 20t, icon report: ␛[20t
        CSI 8t, resize: ␛[8;1;1t
        CSI 2t, iconify: ␛[2t
        CSI 22t and 23t, title stack: ␛[22t␛[23t
        CSI ! p, soft reset: ␛[!p
        CSI i, print the screen: ␛[i
        CSI 5i, printer on: ␛[5i
        CSI ? 5i, autoprint: ␛[?5i
        CSI y, self test: ␛[2;8y
        CSI q, keyboard lights: ␛[3q
        DECSCUSR, cursor shape: ␛[5 q
        DECSCA, protect: ␛[1"q
        DECRQM, mode request: ␛[?1049$p
        DECSLRM, margins: ␛[?69h␛[2;3s
        hide the cursor: ␛[?25l
        alternate screen: ␛[?1049h
        mouse reports: ␛[?1003h␛[?1006h
        focus reports: ␛[?1004h
        bracketed paste off: ␛[?2004l
        132 columns: ␛[?3h
        reverse screen: ␛[?5h
        no autowrap: ␛[?7l
        synchronised output: ␛[?2026h
        insert mode: ␛[4h
        line feed mode: ␛[20h
        modify other keys: ␛[>4;2m
        kitty keyboard: ␛[>31u
        CSI with a control inside: ␛[3␇1m
        CSI with many parameters: ␛[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1H
        OSC 0, title: ␛]0;owned␇
        OSC 1, icon name: ␛]1;owned␇
        OSC 2, title with ST: ␛]2;owned␛\
        OSC 4, palette: ␛]4;0;rgb:ff/ff/ff␇
        OSC 4, palette report: ␛]4;0;?␇
        OSC 7, working directory: ␛]7;file://host/etc␇
        OSC 8, hyperlink: ␛]8;;https://evil.example␛\good.example␛]8;;␛\
        OSC 8, with an id: ␛]8;id=1;file:///etc/passwd␇x␛]8;;␇
        OSC 9, notification: ␛]9;you have mail␇
        OSC 9;4, progress: ␛]9;4;1;50␇
        OSC 10, colour report: ␛]10;?␇
        OSC 11, background: ␛]11;#000000␇
        OSC 12, cursor colour: ␛]12;red␇
        OSC 46, log file: ␛]46;/tmp/x␇
        OSC 50, font: ␛]50;#1␇
        OSC 52, write the clipboard: ␛]52;c;cm0gLXJmIH4=␇
        OSC 52, read the clipboard: ␛]52;c;?␇
        OSC 104, reset the palette: ␛]104␇
        OSC 133, prompt marks: ␛]133;A␇
        OSC 555, screenshot: ␛]555␇
        OSC 633, editor shell integration: ␛]633;E;rm -rf ~␇
        OSC 777, notification: ␛]777;notify;a;b␇
        OSC 1337, file: ␛]1337;File=name=eA==;inline=0:eA==␇
        OSC 1337, clipboard: ␛]1337;CopyToClipboard=general␇
        OSC 1337, steal focus: ␛]1337;StealFocus␇
        OSC 1337, set a mark: ␛]1337;SetMark␇
        OSC without end: ␛]0;swallows what follows
        OSC with line ends: ␛]0;a⏎b␇
        DCS, sixel: ␛Pq#0;2;0;0;0#0~~␛\
        DCS, DECRQSS: ␛P$qm␛\
        DCS, termcap: ␛P+q544e␛\
        DCS, user keys: ␛P0;1|17/0a␛\
        DCS, tmux passthrough: ␛Ptmux;␛␛]0;x␇␛\
        DCS, screen passthrough: ␛P␛]0;x␇␛\
        APC, kitty graphics: ␛_Ga=T,f=100;AAAA␛\
        APC, kitty file: ␛_Gt=f;L2V0Yy9wYXNzd2Q=␛\
        PM: ␛^x␛\
        SOS: ␛Xx␛\
        ESC k, screen title: ␛kowned␛\
        ESC c, full reset: ␛c
        ESC Z, identify: ␛Z
        ESC 7 and 8, save and restore: ␛7␛8
        ESC D, E, M, lines: ␛D␛E␛M
        ESC H, tab stop: ␛H
        ESC N and O, single shifts: ␛Na␛Oa
        ESC ( 0, line drawing: ␛(0qqq␛(B
        ESC % @, leave UTF-8: ␛%@
        ESC # 8, fill the screen: ␛#8
        ESC # 3, double height: ␛#3
        ESC = and >, keypad: ␛=␛>
        ESC SP F, seven bit controls: ␛ F
        ESC l and m, memory lock: ␛l␛m
        VT52 mode: ␛[?2l␛Y  
        Tektronix mode: ␛[?38h
        C1 PAD: \u{80}
        C1 NEL: a\u{85}b
        C1 IND and RI: \u{84}\u{8d}
        C1 DCS: \u{90}q\u{9c}
        C1 SOS: \u{98}x\u{9c}
        C1 DECID: \u{9a}
        C1 CSI: \u{9b}2J
        C1 OSC: \u{9d}0;owned\u{9c}
        C1 PM and APC: \u{9e}\u{9f}
        no-break space is no control:  
        bidi LRE: \u{202a}
        bidi RLE: \u{202b}
        bidi PDF: \u{202c}
        bidi LRO: \u{202d}
        bidi RLO, a name backwards: photo\u{202e}gpj.exe
        bidi isolates: \u{2066}\u{2067}\u{2068}\u{2069}
        bidi in code: if admin\u{202e} \u{2066}// only\u{2069} \u{2066}{
        dash and quotes are harmless: “a” — b…
        emoji are harmless: 👩‍🚀 é
        tabs and line ends are harmless: a	b⏎
    "#]]
    .assert_eq(&shown);
}

#[test]
fn harmless_text_is_not_copied() {
    let text = "plain\n\ttext — “quoted”, 日本語, 👍";
    assert!(matches!(
        display_safe(text),
        std::borrow::Cow::Borrowed(it) if std::ptr::eq(it, text)
    ));
}

#[test]
fn what_shows_as_nothing_is_made_visible() {
    let check = |text: &str, shown: &str| assert_eq!(checked(text), shown);
    check("a\u{200e}b\u{200f}c\u{61c}", r"a\u{200e}b\u{200f}c\u{61c}");
    check(
        "x\u{e0072}\u{e006d}\u{e007f}",
        r"x\u{e0072}\u{e006d}\u{e007f}",
    );
    check(
        "rm\u{200b} \u{2060}\u{feff}-rf",
        r"rm\u{200b} \u{2060}\u{feff}-rf",
    );
    check("a\u{2028}b\u{2029}c\u{85}d", r"a\u{2028}b\u{2029}c\u{85}d");
    check("a\u{ad}b\u{3164}c\u{115f}", r"a\u{ad}b\u{3164}c\u{115f}");
    // Letters of ours are joined to nothing, and no selector follows another.
    check("r\u{200d}m \u{200c}x", r"r\u{200d}m \u{200c}x");
    check(
        "\u{2764}\u{fe0f}\u{fe0f}\u{fe01}",
        "\u{2764}\u{fe0f}\\u{fe0f}\\u{fe01}",
    );
    check("A\u{fe0f}1\u{fe0f}2", r"A\u{fe0f}1\u{fe0f}2");
}

#[test]
fn scripts_and_emoji_keep_what_they_need() {
    for text in [
        "\u{1f469}\u{200d}\u{1f4bb}",
        "\u{2764}\u{fe0f}\u{200d}\u{1f525}",
        "1\u{fe0f}\u{20e3} \u{a9}\u{fe0f}",
        "\u{915}\u{94d}\u{200d}\u{937}",
        "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}",
        "\u{845b}\u{e0100}",
        "caf\u{e9} na\u{ef}ve \u{4e2d}\u{6587}",
    ] {
        assert_eq!(checked(text), text);
        assert_eq!(visible(text), text);
    }
}

#[test]
fn what_is_approved_is_on_one_line_with_nothing_hidden() {
    let check = |text: &str, shown: &str| assert_eq!(visible(text), shown);
    check("cargo test && echo \"a  b\"", "cargo test && echo \"a  b\"");
    check("ls\nrm -rf /", "ls\u{240a}rm -rf /");
    check("ls\r\nrm\tx", "ls\u{240d}\u{240a}rm\u{2409}x");
    check("  ls ", "\u{2420}\u{2420}ls\u{2420}");
    check("  ", "\u{2420}\u{2420}");
    check("a\u{a0}b\u{3000}c", r"a\u{a0}b\u{3000}c");
    check("", "");
}

#[test]
fn random_text_is_made_safe() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for _ in 0..200_000 {
        let text: String = (0..random.below(24)).map(|_| random.char()).collect();
        checked(&text);
    }
}

#[test]
fn random_bytes_are_made_safe() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..50_000 {
        let bytes: Vec<u8> = (0..random.below(64))
            .map(|_| random.below(256) as u8)
            .collect();
        checked(&String::from_utf8_lossy(&bytes));
    }
}

fn checked(text: &str) -> String {
    let safe = display_safe(text);
    let left = safe.chars().find(|it| {
        matches!(it, '\0'..='\x08' | '\x0b'..='\x1f' | '\x7f'..='\u{9f}')
            || matches!(sign(*it), CharClass::Hidden)
    });
    assert_eq!(left, None, "{text:?} became {safe:?}");
    assert_eq!(display_safe(&safe), safe, "not idempotent for {text:?}");
    let shown = visible(text);
    assert_eq!(visible(&shown), shown, "not idempotent for {text:?}");
    let blank = |it: char| it.is_whitespace() && it != ' ' || it.is_control();
    assert!(!shown.contains(blank), "{text:?} became {shown:?}");
    assert_eq!(shown.trim(), shown, "{text:?}");
    safe.into_owned()
}

/// xorshift: the same texts in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// Mostly from the ranges where the rules begin and end.
    fn char(&mut self) -> char {
        let code = match self.below(10) {
            8 => [
                0x200c, 0x200d, 0xfe0f, 0x1f469, 0x1f4bb, 0x915, 0xe0041, 0x61c,
            ][self.below(8) as usize],
            9 => {
                [0xfe00, 0xe0100, 0x6587, 0x627, 0x200b, 0x2028, 0xa0, 0x20][self.below(8) as usize]
            }
            0 => self.below(0x20),
            1 => 0x1b,
            2 => 0x78 + self.below(0x30),
            3 => 0x2020 + self.below(0x60),
            4 => [0x0d, 0x0a, 0x09, 0x07][self.below(4) as usize],
            5 => 0x20 + self.below(0x60),
            6 => 0x2400 + self.below(0x30),
            _ => self.below(0x11_0000),
        };
        char::from_u32(code as u32).unwrap_or('\u{fffd}')
    }
}
