"""Writes `src/linkspan/types.py` from the JSON Schema of the canonical events.

usage: python generate_types.py [--check]

The types are plain `TypedDict`s, so the package needs nothing at run time. A key that may be absent
is in a second class body with `total=False`: `NotRequired` is not in the standard library of Python
3.10. `--check` compares instead of writing.
"""

from __future__ import annotations

import json
import keyword
import sys
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCHEMA = HERE.parents[1] / "docs" / "linkspan.schema.json"
TYPES = HERE / "src" / "linkspan" / "types.py"

HEAD = '''"""The canonical events of linkspan, as types.

Written by `generate_types.py` from `docs/linkspan.schema.json`; do not edit. `Event` is the union
of all events, and its `type` tells them apart. A later version of linkspan may add keys.
"""

# ruff: noqa: E501

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

'''

SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def main() -> int:
    text = generate(json.loads(SCHEMA.read_text(encoding="utf-8")))
    if "--check" not in sys.argv[1:]:
        TYPES.write_text(text, encoding="utf-8")
    elif TYPES.read_text(encoding="utf-8") != text:
        print(f"{TYPES} is not what {SCHEMA.name} says; run `python {Path(__file__).name}`")
        return 1
    return 0


def generate(schema: dict[str, Any]) -> str:
    """Return the whole module."""
    definitions: dict[str, Any] = schema["$defs"]
    # Aliases are evaluated where they stand, and so are base classes: the simple come first.
    aliases, classes, branches, unions = [], [], [], []
    for name, it in definitions.items():
        if "properties" in it:
            classes.append(typed_dict(name, it))
        elif all("properties" in branch for branch in it.get("oneOf", [{}])):
            names, texts = union(name, it)
            branches += texts
            unions.append(alias(name, f"Union[{', '.join(names)}]", it))
        else:
            aliases.append(alias(name, type_of(it), it))
    classes.append(typed_dict("Envelope", {**schema, "description": "What every event has."}))
    names = []
    for branch in schema["oneOf"]:
        name = class_name(branch["properties"]["type"]["const"])
        names.append(name)
        branches.append(typed_dict(name, branch, base="Envelope"))
    unions.append(alias("Event", f"Union[{', '.join(names)}]", schema))
    return "".join([HEAD, *aliases, *classes, *branches, *unions]).rstrip() + "\n"


def union(name: str, it: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the names and texts of the classes of a union."""
    names, texts = [], []
    for branch in it["oneOf"]:
        key, value = next(iter(branch["properties"].items()))
        made = class_name(value.get("const", key)) + name
        base = branch["$ref"].rsplit("/", 1)[1] if "$ref" in branch else None
        if value.get("type") == "object" and "properties" in value:
            inner = class_name(key)
            texts.append(typed_dict(inner, value))
            branch = {**branch, "properties": {key: {"$ref": f"#/$defs/{inner}"}}}
        names.append(made)
        texts.append(typed_dict(made, branch, base=base))
    return names, texts


def typed_dict(name: str, it: dict[str, Any], base: str | None = None) -> str:
    """Return a class, in two if some of its keys may be absent."""
    required = set(it.get("required", []))
    properties: dict[str, Any] = it["properties"]
    present = {key: at for key, at in properties.items() if key in required}
    absent = {key: at for key, at in properties.items() if key not in required}
    if not absent:
        return body(name, present, base or "TypedDict", it)
    if not present:
        return body(name, absent, f"{base or 'TypedDict'}, total=False", it)
    first = f"_{name}Required"
    return body(first, present, base or "TypedDict", {}) + body(
        name, absent, f"{first}, total=False", it
    )


def body(name: str, keys: dict[str, Any], bases: str, it: dict[str, Any]) -> str:
    if any(keyword.iskeyword(key) for key in keys):
        # Only a call can have a key that is a word of Python.
        fields = "".join(f'        "{key}": "{type_of(at)}",\n' for key, at in keys.items())
        return f'{name} = TypedDict(\n    "{name}",\n    {{\n{fields}    }},\n)\n\n\n'
    lines = [f"class {name}({bases}):\n"]
    if "description" in it:
        lines.append(f"    {docstring(it['description'])}\n\n")
    for key, at in keys.items():
        lines.append(f"    {key}: {type_of(at)}\n")
        if "description" in at:
            lines.append(f"    {docstring(at['description'])}\n")
    return "".join(lines) + "\n\n"


def alias(name: str, what: str, it: dict[str, Any]) -> str:
    text = f"{name} = {what}\n"
    if "description" in it:
        text += docstring(it["description"]) + "\n"
    return text + "\n"


def type_of(at: dict[str, Any]) -> str:
    if "$ref" in at:
        return str(at["$ref"].rsplit("/", 1)[1])
    if "const" in at:
        return f"Literal[{json.dumps(at['const'])}]"
    if "enum" in at:
        return f"Literal[{', '.join(map(json.dumps, at['enum']))}]"
    if "oneOf" in at:
        words = [it for branch in at["oneOf"] for it in branch.get("enum", [branch.get("const")])]
        return f"Literal[{', '.join(map(json.dumps, words))}]"
    kind = str(at.get("type"))
    if kind == "array":
        return f"list[{type_of(at['items'])}]"
    if kind == "object":
        return "dict[str, Any]"
    return SCALARS.get(kind, "Any")


def class_name(word: str) -> str:
    """`item.closed` becomes `ItemClosedEvent`, `image_url` becomes `ImageUrl`."""
    name = "".join(it.capitalize() for it in word.replace(".", "_").split("_"))
    return f"{name}Event" if "." in word else name


def docstring(text: str) -> str:
    return '"""' + textwrap.dedent(text).strip() + '"""'


if __name__ == "__main__":
    sys.exit(main())
