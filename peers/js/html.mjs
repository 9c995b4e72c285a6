// Judges transcript pages in a real browser: Chromium opens each and must find nothing to do.
//
// Nothing may run, load, ask or complain: no script (every attack of ours sets `window.__xss`),
// no request but the page itself and the pictures it carries, no dialog, nothing on the console,
// no violation of the page's own policy. Whatever can be touched is touched. Then the page is
// looked at as people will see it: on a phone nothing may stick out, on paper all is unfolded.

import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

import { main, reject } from "./judge.mjs";

const PHONE = 400;

const ELEMENTS = new Set(
  ("A ARTICLE B BLOCKQUOTE BODY BR CAPTION CODE DD DEL DETAILS DIV DL DT EM FOOTER H1 H2 H3 H4 H5 H6 HEAD HEADER HR HTML I " +
    "IMG INS LI MAIN META OL P PRE S SECTION SPAN STRONG STYLE SUMMARY TABLE TBODY TD TH THEAD TIME TITLE TR UL").split(" "),
);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    // Root has no sandbox to go into; the pages are ours, and the machine is a test's.
    ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    // Were a page to ask for anything, nobody outside would hear of it.
    "--host-resolver-rules=MAP * ~NOTFOUND",
  ],
});

async function judge(_bytes, _given, file) {
  const page = await browser.newPage();
  const seen = [];
  try {
    const url = pathToFileURL(file).href;
    page.on("dialog", (it) => {
      seen.push(`a dialog: ${it.message()}`);
      it.dismiss();
    });
    page.on("console", (it) => seen.push(`on the console: ${it.text()}`));
    page.on("pageerror", (it) => seen.push(`an error: ${it.message}`));
    page.on("request", (it) => {
      const asked = it.url().split("#")[0];
      if (asked !== url && !asked.startsWith("data:image/")) seen.push(`a request: ${asked}`);
    });
    page.on("popup", () => seen.push("a window was opened"));
    await page.addInitScript(() => {
      window.__violations = [];
      document.addEventListener("securitypolicyviolation", (it) => {
        window.__violations.push(`${it.violatedDirective} ${it.blockedURI}`);
      });
    });
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.goto(url, { waitUntil: "load" });

    const found = await page.evaluate(inspect, [...ELEMENTS]);
    if (found !== undefined) reject(found);
    await page.evaluate(touch);
    await settled(page);
    const ran = await page.evaluate(() => ({ xss: window.__xss, violations: window.__violations }));
    if (ran.xss !== undefined) reject("a script ran");
    if (ran.violations.length > 0) reject(`the policy was violated: ${ran.violations[0]}`);
    if (page.url().split("#")[0] !== url) reject(`the page went to ${page.url()}`);

    await page.setViewportSize({ width: PHONE, height: 800 });
    const width = await page.evaluate(() => document.scrollingElement.scrollWidth);
    if (width > PHONE) reject(`${width} pixels wide on a phone of ${PHONE}`);

    await page.evaluate(() => document.querySelectorAll("details").forEach((it) => (it.open = false)));
    await page.emulateMedia({ media: "print" });
    await settled(page);
    const hidden = await page.evaluate(() => {
      const is_hidden = (it) => [...it.children].slice(1).some((child) => !child.checkVisibility());
      return [...document.querySelectorAll("details")].filter(is_hidden).length;
    });
    if (hidden > 0) reject(`${hidden} details are folded on paper`);
    if (seen.length > 0) reject(seen[0]);
  } finally {
    await page.close();
  }
}

/** Two frames: whatever was triggered has happened. */
async function settled(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));
}

/** Runs in the page: the first thing in it that should not be there. */
function inspect(names) {
  const policy = document.querySelector("head > meta[http-equiv='Content-Security-Policy']")?.content ?? "";
  if (!policy.startsWith("default-src 'none';") || /script-src|unsafe|\*/.test(policy)) return `no strict policy: ${policy}`;
  const known = new Set(names);
  for (const it of document.querySelectorAll("*")) {
    if (!known.has(it.tagName)) return `a strange element: ${it.tagName}`;
    for (const { name, value } of it.attributes) {
      if (name.startsWith("on") || name === "style") return `a strange attribute: ${name}=${value}`;
    }
    if (it.tagName === "A") {
      const is_ours = it.getAttribute("href")?.startsWith("#run-");
      if (!is_ours && !["http:", "https:", "mailto:"].includes(it.protocol)) return `a link to ${it.href}`;
      if (!is_ours && it.rel !== "noopener noreferrer") return `a link without rel: ${it.href}`;
    }
    if (it.tagName === "IMG" && !/^data:image\/(png|jpeg|gif|webp);base64,/.test(it.src)) return `a picture from ${it.src}`;
    if (it.tagName === "IMG" && it.naturalWidth === 0) return `a picture that is none: ${it.alt}`;
    if (it.tagName === "DETAILS" && it.firstElementChild?.tagName !== "SUMMARY") return "details without a summary";
  }
  if (document.title.trim() === "") return "no title";
  for (const name of ["header", "main", "h1", "footer.bottom"]) {
    if (document.querySelectorAll(`body ${name === "header" ? "> header" : name}`).length !== 1) return `not one ${name}`;
  }
  const ids = [...document.querySelectorAll("[id]")].map((it) => it.id);
  if (new Set(ids).size !== ids.length) return "an id is used twice";
  return undefined;
}

/** Runs in the page: unfolds, points at, focuses and clicks everything. */
function touch() {
  document.addEventListener("click", (it) => it.preventDefault(), true);
  for (const it of document.querySelectorAll("details")) it.open = true;
  for (const it of document.querySelectorAll("body *")) {
    for (const name of ["mouseover", "mouseenter", "pointerover", "focus", "toggle", "animationstart", "error", "load"]) {
      it.dispatchEvent(new Event(name));
    }
    it.focus?.();
    if (it.tagName !== "SUMMARY") it.click?.();
  }
}

try {
  await main({ name: "html", extension: ".html", judge, parallel: 4 });
} finally {
  await browser.close();
}
