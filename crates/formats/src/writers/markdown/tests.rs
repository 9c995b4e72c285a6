use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::*;

/// What a reader of Markdown sees, line by line; HTML is told apart.
fn seen(markdown: &str) -> String {
    let mut text = String::new();
    for event in Parser::new_ext(
        markdown,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH,
    ) {
        match event {
            Event::Text(it) => text.push_str(&it),
            Event::Html(it) | Event::InlineHtml(it) => text += &format!("HTML({it})"),
            Event::SoftBreak => text.push_str("SOFT"),
            Event::HardBreak | Event::End(TagEnd::Paragraph) => text.push('\n'),
            Event::Start(Tag::Paragraph | Tag::BlockQuote(_)) | Event::End(_) => (),
            other => text += &format!("{other:?}"),
        }
    }
    text
}

#[test]
fn plain_text_shows_as_it_is() {
    for text in [
        "# no heading",
        "- no list\n+ no list\n* no list\n1. no list\n2) no list",
        "no\n===\nno\n---\nheading",
        "*a* _b_ **c** __d__ ~~e~~ snake_case_name `code` ``more``",
        "<script>alert(1)</script> <b>x</b> &lt; &amp; &nbsp;",
        "![i](http://x/y.png) [l](javascript:alert(1)) [ref]: http://x",
        "| a | b |\n| - | - |\n| 1 | 2 |",
        "> no quote\n>> none",
        "```\nno fence\n~~~",
        "back\\slash \\* \\",
        "end with two spaces\nnext",
        "!\u{5b}x]",
    ] {
        let mut out = Vec::new();
        quote(&plain(text), &mut out);
        let page = String::from_utf8(out).unwrap();
        assert_eq!(seen(&page).trim_end(), text, "{page}");
    }
}

#[test]
fn white_space_before_a_line_is_kept_as_such() {
    assert_eq!(
        seen(&plain("a\n    b\n\tc")),
        "a\n\u{a0}\u{a0}\u{a0}\u{a0}b\n\u{2003}\u{2003}c\n"
    );
}

#[test]
fn an_answer_cannot_reach_beyond_itself() {
    let answers = [
        "</details></details>",
        "text\n</details>\n",
        "<!-- a comment that never ends",
        "<script>\n```\nnever closed",
        "<pre>\n<!-- </pre> \n\n```",
        "<div>\n```html\n</div>\n~~~",
        "```rust\nfn main() {}",
        "````md\n```\nx\n```",
        "~~~\nopen\n```",
        "- a\n  ```\n  open in a list",
        "> ```\n> open in a quotation",
        "<details>\n<summary>s</summary>\n\n<b>x",
        "a <img src=x onerror=alert(1)> b",
        "<?php\n<![CDATA[\n<!DOCTYPE",
        "    indented\n</details>",
        "[x]: <javascript:alert(1)>\n[x]",
        "`<b>` and ```` ``` ````",
    ];
    for answer in answers {
        let page = format!("before\n\n{}\n\n<!-- end -->\n", prose::contained(answer));
        let mut html = String::new();
        for event in Parser::new(&page) {
            if let Event::Html(it) | Event::InlineHtml(it) = event {
                html.push_str(&it);
            }
        }
        assert_eq!(html, "<!-- end -->\n", "{page}");
    }
}

#[test]
fn harmless_markdown_is_left_alone() {
    for answer in [
        "# Title\n\n- a\n- b\n\n```rust\nlet x: Vec<u8>;\n```",
        "a < b and <https://example.com> and `<b>`",
        "| a | b |\n| - | - |\n| `<i>` | 2 |",
    ] {
        assert_eq!(prose::contained(answer), answer);
    }
}

#[test]
fn a_fence_is_longer_than_any_in_the_text() {
    let mut out = Vec::new();
    fence("", "a\n````\nb", &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "`````\na\n````\nb\n`````\n\n"
    );
}

#[test]
fn code_in_a_line_keeps_its_backticks() {
    for text in ["a", "`", "``a`", "a`b``c", "<b>"] {
        let code = inline(text);
        let events: Vec<_> = Parser::new(&code).collect();
        assert_eq!(events[1], Event::Code(text.into()), "{code}");
    }
}
