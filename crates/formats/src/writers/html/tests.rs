use super::*;

#[test]
fn the_policy_allows_the_style_sheet_and_no_other() {
    assert_eq!(
        base64(&sha256(b"abc")),
        "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
    );
    let hash = base64(&sha256(STYLE.as_bytes()));
    assert_eq!(hash, STYLE_HASH, "put this hash into STYLE_HASH");
}

/// FIPS 180-4, for one test; not worth a dependency.
fn sha256(bytes: &[u8]) -> Vec<u8> {
    let primes: Vec<u32> = (2..312).filter(|n| (2..*n).all(|it| n % it != 0)).collect();
    let fraction = |root: f64| (root.fract() * 2_f64.powi(32)) as u32;
    let k: Vec<u32> = primes
        .iter()
        .map(|it| fraction(f64::from(*it).cbrt()))
        .collect();
    let mut state: Vec<u32> = primes[..8]
        .iter()
        .map(|it| fraction(f64::from(*it).sqrt()))
        .collect();
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let words = block
            .chunks(4)
            .map(|it| u32::from_be_bytes(it.try_into().unwrap()));
        let mut w: Vec<u32> = words.collect();
        for n in 16..64 {
            let (a, b) = (w[n - 15], w[n - 2]);
            let a = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let b = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            w.push(
                w[n - 16]
                    .wrapping_add(a)
                    .wrapping_add(w[n - 7])
                    .wrapping_add(b),
            );
        }
        let mut s = state.clone();
        for n in 0..64 {
            let e = s[4].rotate_right(6) ^ s[4].rotate_right(11) ^ s[4].rotate_right(25);
            let choice = s[4] & s[5] ^ !s[4] & s[6];
            let one = s[7]
                .wrapping_add(e)
                .wrapping_add(choice)
                .wrapping_add(k[n])
                .wrapping_add(w[n]);
            let a = s[0].rotate_right(2) ^ s[0].rotate_right(13) ^ s[0].rotate_right(22);
            let majority = s[0] & s[1] ^ s[0] & s[2] ^ s[1] & s[2];
            s.rotate_right(1);
            s[4] = s[4].wrapping_add(one);
            s[0] = one.wrapping_add(a).wrapping_add(majority);
        }
        for (sum, it) in state.iter_mut().zip(s) {
            *sum = sum.wrapping_add(it);
        }
    }
    state.iter().flat_map(|it| it.to_be_bytes()).collect()
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
        "[a](https://x.y/?a=1&b=\"2\") <me@x.y> [b](javascript:alert(1)) [c](data:text/html,x) [d](//x.y) [e](JAVAscript:x) [f](#run-1)",
        expect_test::expect![[r##"
            <p><a href="https://x.y/?a=1&amp;b=&quot;2&quot;" rel="noopener noreferrer">a</a> <a href="mailto:me@x.y" rel="noopener noreferrer">me@x.y</a> b <code>javascript:alert(1)</code> c <code>data:text/html,x</code> d <code>//x.y</code> e <code>JAVAscript:x</code> f <code>#run-1</code></p>
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
fn only_images_of_their_declared_type_are_shown() {
    assert!(is_picture("image/png", "iVBORw0KGgoAAAA="));
    assert!(!is_picture("image/png", "aGk="));
    assert!(!is_picture("image/svg+xml", "PHN2Zz4="));
    assert!(!is_picture("image/png", "iVBORw0KGgo\" onload=\"x"));
    assert!(!is_picture("image/png\" onerror=\"x", "iVBORw0KGgo"));
}
