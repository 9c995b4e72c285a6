// As much of a document as making nodes needs: names, attributes, children, text.

const PROPERTIES = {
  href: "href",
  rel: "rel",
  target: "target",
  className: "class",
  tabIndex: "tabindex",
  start: "start",
};

class FakeElement {
  constructor(name) {
    this.name = name;
    this.attributes = {};
    this.children = [];
    this.dataset = {};
  }
  append(...children) {
    this.children.push(...children);
  }
  set textContent(text) {
    this.children = [text];
  }
  get textContent() {
    return this.children.map((it) => (typeof it === "string" ? it : it.textContent)).join("");
  }
}
for (const [property, attribute] of Object.entries(PROPERTIES)) {
  Object.defineProperty(FakeElement.prototype, property, {
    set(value) {
      this.attributes[attribute] = String(value);
    },
    get() {
      return this.attributes[attribute];
    },
  });
}
// Whoever writes HTML, or an attribute that is not above, fails the test.
for (const name of ["innerHTML", "outerHTML", "srcdoc", "onclick", "style", "src"]) {
  Object.defineProperty(FakeElement.prototype, name, {
    set() {
      throw new Error(`somebody set ${name}`);
    },
  });
}

globalThis.document = { createElement: (name) => new FakeElement(name) };

/** The node and all nodes in it. */
export function every(node) {
  return typeof node === "string" ? [] : [node, ...node.children.flatMap(every)];
}

/** A short form to compare. */
export function outline(node) {
  if (typeof node === "string") return node;
  const attributes = Object.entries(node.attributes).map(([name, value]) => ` ${name}=${value}`);
  return `<${node.name}${attributes.join("")}>${node.children.map(outline).join("")}</${node.name}>`;
}
