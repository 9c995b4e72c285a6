// Markdown becomes the elements that are allowed, and hostile text stays text.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { every, outline } from "./dom.mjs";
import { blocks, inline, render, web } from "../assets/markdown.js";

const ELEMENTS = new Set(
  "a blockquote br code del div em h3 h4 h5 h6 hr li ol p pre strong table tbody td th thead tr ul".split(" "),
);
const ATTRIBUTES = {
  a: ["href", "rel", "target"],
  pre: ["tabindex"],
  ol: ["start"],
  div: ["class"],
  li: ["class"],
  td: ["class"],
  th: ["class"],
};
const PAYLOADS = readFileSync(new URL("../../fixtures/model/xss.payloads.jsonl", import.meta.url), "utf8")
  .split("\n")
  .filter(Boolean)
  .map((it) => JSON.parse(it));

function html(text) {
  return blocks(text)
    .map((it) => outline(render(it)))
    .join("");
}

function check(text, expected) {
  assert.equal(html(text), expected);
}

function assertHarmless(text) {
  for (const node of blocks(text).flatMap((it) => every(render(it)))) {
    assert.ok(ELEMENTS.has(node.name), `<${node.name}> from ${text}`);
    for (const [name, value] of Object.entries(node.attributes)) {
      assert.ok(ATTRIBUTES[node.name]?.includes(name), `${name} of <${node.name}> from ${text}`);
      if (name === "href") assert.match(value, /^https?:\/\//i);
      if (name === "class") assert.match(value, /^(?:table|right|center|task-open|task-done)$/);
    }
    if (node.name === "a") assert.deepEqual([node.rel, node.target], ["noopener noreferrer", "_blank"]);
  }
}

test("paragraphs, headings, rules and breaks", () => {
  check("# One\n\ntwo  \nthree\n\n---\nfour", "<h3>One</h3><p>two<br></br>three</p><hr></hr><p>four</p>");
});

test("marks inside of lines", () => {
  check(
    "**a _b_** `c*d*` ~~e~~ snake_case_name 2*3*4",
    "<p><strong>a <em>b</em></strong> <code>c*d*</code> <del>e</del> snake_case_name 2*3*4</p>",
  );
});

test("code is left alone, also when it is not closed yet", () => {
  check("```rust\nfn *a*() {}\n```\nx", "<pre tabindex=0><code>fn *a*() {}</code></pre><p>x</p>");
  check("```\n<b>", "<pre tabindex=0><code><b></code></pre>");
});

test("lists, in lists, with tasks", () => {
  check(
    "- a\n  - b\n- [x] c\n\n3. d\n4. e",
    "<ul><li>a<ul><li>b</li></ul></li><li class=task-done>c</li></ul><ol start=3><li>d</li><li>e</li></ol>",
  );
});

test("tables and quotes", () => {
  check(
    "| a | b |\n|---|--:|\n| 1 | `2` |",
    "<div class=table><table><thead><tr><th>a</th><th class=right>b</th></tr></thead><tbody><tr><td>1</td><td class=right><code>2</code></td></tr></tbody></table></div>",
  );
  check("> a\n> - b", "<blockquote>a<ul><li>b</li></ul></blockquote>");
});

test("links go to the web or nowhere", () => {
  const link = (href, text = href) => `<a href=${href} rel=noopener noreferrer target=_blank>${text}</a>`;
  check(
    "[a](https://x.test/) <http://y.test> https://z.test/a.",
    `<p>${link("https://x.test/", "a")} ${link("http://y.test")} ${link("https://z.test/a")}.</p>`,
  );
  check(
    "[a](javascript:alert(1)) ![b](https://x.test/b.png)",
    `<p>[a](javascript:alert(1)) ${link("https://x.test/b.png", "b")}</p>`,
  );
  check("[see https://a.test](https://b.test)", `<p>${link("https://b.test", "see https://a.test")}</p>`);
  const refused = [
    "javascript:1",
    "JaVaScRiPt:1",
    "data:text/html,x",
    "//x.test",
    "/x",
    "file:///etc",
    "vbscript:1",
    "java\nscript:1",
    "https://user:pass@x.test",
    "blob:https://x.test/1",
  ];
  assert.deepEqual(refused.filter(web), []);
});

test("hostile text stays text", () => {
  assert.ok(PAYLOADS.length > 100);
  for (const it of PAYLOADS) {
    const around = [
      it,
      `**${it}**`,
      `[${it}](${it})`,
      `![${it}](${it})`,
      `<${it}>`,
      `# ${it}`,
      `- ${it}`,
      `> ${it}`,
      `\`\`\`${it}\n${it}`,
      `| ${it} |\n|---|\n| ${it} |`,
      `[a](https://x.test/${it})`,
      `https://x.test/${it}`,
    ];
    for (const text of around) assertHarmless(text);
  }
});

test("nothing is lost: the words of a text are in its nodes", () => {
  // A link hides its address and title, a fence its language.
  for (const it of PAYLOADS.filter((it) => !it.includes("](") && !/```|~~~/.test(it))) {
    const shown = blocks(it)
      .map((block) => render(block).textContent)
      .join("");
    const letters = (text) => text.replace(/[^\p{L}\p{N}]/gu, "");
    assert.equal(letters(shown), letters(it));
  }
});

test("long and deep text takes no time", () => {
  const long = [
    "*",
    "_",
    "**a",
    "`",
    "[",
    "![",
    "[a](",
    "<http://",
    "~~a",
    "> ",
    "- ",
    "| a ",
    "**a*",
    "[[a](b",
    "\\",
  ].flatMap((it) => [it.repeat(5_000), `${it}\n`.repeat(5_000), `${it}a `.repeat(5_000)]);
  for (const it of long) {
    const began = performance.now();
    blocks(it).map((block) => render(block));
    assert.ok(performance.now() - began < 1500, `${it.slice(0, 12)}: ${performance.now() - began} ms`);
  }
});

test("a growing text keeps its finished blocks", () => {
  const text = "# a\n\nsome words\n\n- one\n- two\n\nthe end";
  const sources = blocks(text.slice(0, -3))
    .map((it) => it.source)
    .slice(0, -1);
  assert.deepEqual(
    blocks(text)
      .map((it) => it.source)
      .slice(0, -1),
    sources,
  );
  assert.equal(inline("x").length, 1);
});
