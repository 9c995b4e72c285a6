// A file of the session's directory, in a window of its own inside the page.

import { file, sentence } from "./api.js";
import { button, byId, h, pictureOf } from "./dom.js";
import { visible } from "./words.js";

const MAX_TEXT = 1_000_000;

// Something else is shown: a file of this session would hide it.
addEventListener("hashchange", () => /** @type {HTMLDialogElement} */ (byId("viewer")).close());

/** @param {string} session @param {string} path */
export async function openFile(session, path) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("viewer"));
  const body = h("div", { class: "viewer-body" }, h("p", { class: "note" }, "Loading…"));
  const save = h("a", { class: "button", hidden: true }, "Save");
  dialog.replaceChildren(
    h(
      "header",
      null,
      h("b", { dir: "auto" }, visible(path)),
      save,
      button("Close", () => dialog.close()),
    ),
    body,
  );
  dialog.setAttribute("aria-label", "File");
  if (!dialog.open) dialog.showModal();
  try {
    const blob = await file(session, path);
    if (blob.type.startsWith("image/")) body.replaceChildren(pictureOf(blob, path));
    else
      body.replaceChildren(h("pre", { class: "plain", tabindex: 0 }, visible((await blob.text()).slice(0, MAX_TEXT))));
    const url = URL.createObjectURL(blob);
    save.href = url;
    save.download = path.split("/").at(-1) ?? "file";
    save.hidden = false;
    dialog.addEventListener("close", () => URL.revokeObjectURL(url), { once: true });
  } catch (error) {
    body.replaceChildren(h("p", { class: "note" }, `Cannot show it: ${sentence(error)}`));
  }
}
