use sha2::{Digest, Sha256};

use super::*;

#[test]
fn the_policy_allows_the_style_sheet_and_no_other() {
    let digest = Sha256::digest(STYLE.as_bytes());
    assert_eq!(base64(&digest), STYLE_HASH, "put this hash into STYLE_HASH");
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut bits = 0;
        for at in 0..3 {
            bits = bits << 8 | u32::from(*chunk.get(at).unwrap_or(&0));
        }
        for at in 0..4 {
            if at <= chunk.len() {
                text.push(char::from(ALPHABET[(bits >> (18 - 6 * at) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

fn rendered(markdown: &str) -> String {
    let mut out = Vec::new();
    prose::render(markdown, &mut out);
    String::from_utf8(out).unwrap()
}

fn check(markdown: &str, expect: expect_test::Expect) {
    expect.assert_eq(&rendered(markdown));
}

#[test]
fn html_in_markdown_is_text() {
    check(
        "<script>alert(1)</script>\n\na <img src=x onerror='y'> b",
        expect_test::expect![[r#"
            <p class="markup">&lt;script&gt;alert(1)&lt;/script&gt;
            </p>
            <p>a &lt;img src=x onerror=&#39;y&#39;&gt; b</p>
        "#]],
    );
}

#[test]
fn links_lead_to_pages_and_letters_only() {
    check(
        "[a](https://x.y/?a=1&b=\"2\") <me@x.y> [b](javascript:alert(1)) [c](data:text/html,x) [d](//x.y) [e](JAVAscript:x) [f](#turn-1)",
        expect_test::expect![[r##"
            <p><a href="https://x.y/?a=1&amp;b=&quot;2&quot;" rel="noopener noreferrer">a</a> <a href="mailto:me@x.y" rel="noopener noreferrer">me@x.y</a> b <code>javascript:alert(1)</code> c <code>data:text/html,x</code> d <code>//x.y</code> e <code>JAVAscript:x</code> f <code>#turn-1</code></p>
        "##]],
    );
}

#[test]
fn pictures_are_links_and_never_inside_of_one() {
    check(
        "![alt](https://x.y/z.png) [![in](https://x.y/i.png)](https://x.y) ![](javascript:x)",
        expect_test::expect![[r#"
            <p><a href="https://x.y/z.png" rel="noopener noreferrer">picture: alt</a> <a href="https://x.y" rel="noopener noreferrer">picture: in <code>https://x.y/i.png</code></a> picture:  <code>javascript:x</code></p>
        "#]],
    );
}

#[test]
fn blocks_of_markdown() {
    check(
        "# T\n\n1. a\n   - [x] b\n\n| l | r |\n| - | -: |\n| `1` | ~~2~~ |\n\n```rust \"x\n<b>\n```\n> q\n***",
        expect_test::expect![[r#"
            <h3>T</h3>
            <ol start="1">
            <li>a<ul>
            <li>☑ b</li>
            </ul>
            </li>
            </ol>
            <div class="table"><table>
            <thead><tr><th>l</th><th class="right">r</th></tr></thead>
            <tbody>
            <tr><td><code>1</code></td><td class="right"><s>2</s></td></tr>
            </tbody>
            </table></div>
            <pre class="code" tabindex="0" aria-label="Code, rust">
            &lt;b&gt;
            </pre>
            <blockquote>
            <p>q</p>
            </blockquote>
            <hr>
        "#]],
    );
}

#[test]
fn orders_to_a_terminal_and_reversed_text_are_visible() {
    assert_eq!(escape("\x1b[31m\u{202e}&\0"), "␛[31m\\u{202e}&amp;␀");
    assert!(rendered("a\u{202e}b").contains("a\\u{202e}b"));
}

#[test]
fn only_pictures_that_are_what_they_say_are_shown() {
    assert!(is_picture("image/png", "iVBORw0KGgoAAAA="));
    assert!(!is_picture("image/png", "aGk="));
    assert!(!is_picture("image/svg+xml", "PHN2Zz4="));
    assert!(!is_picture("image/png", "iVBORw0KGgo\" onload=\"x"));
    assert!(!is_picture("image/png\" onerror=\"x", "iVBORw0KGgo"));
}
