"""Builds the Python package: the program, its manual pages and completions, and the modules.

A backend as PEP 517 describes it, without dependencies, for `pip install .` and for `cargo xtask
dist`. It packs the program that the setting `program` names, or else builds one with cargo; the
setting `platform` is the platform in the wheel's name. The same input gives the same bytes: files
are sorted, and their times are `SOURCE_DATE_EPOCH`.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sysconfig
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent.parent
MODULES = ROOT / "packages" / "python" / "src"

Files = dict[str, bytes]

# What an archive of the sources needs so that a wheel can be built from it. Cargo wants every
# member of the workspace to be there.
SOURCES = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "crates",
    "packages/python",
    "pyproject.toml",
    "xtask",
]

COMPLETIONS = {
    "bash": "share/bash-completion/completions/linkspan",
    "fish": "share/fish/vendor_completions.d/linkspan.fish",
    "zsh": "share/zsh/site-functions/_linkspan",
}


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Make a wheel in a folder, and return its name."""
    return _wheel(wheel_directory, config_settings or {}, dict(_modules()))


def build_editable(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Make a wheel whose modules are those of the working tree."""
    return _wheel(wheel_directory, config_settings or {}, {"linkspan.pth": f"{MODULES}\n".encode()})


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: dict[str, Any] | None = None
) -> str:
    """Write the metadata alone, so that pip need not build the program to read them."""
    project = _project()
    folder = f"linkspan-{project['version']}.dist-info"
    for name, content in _metadata(project, _platform(config_settings or {})).items():
        path = Path(metadata_directory, folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """Make an archive of the sources in a folder, and return its name."""
    project = _project()
    top = f"linkspan-{project['version']}"
    files = dict(_sources())
    files["PKG-INFO"] = _core_metadata(project)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in sorted(files.items()):
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size = len(content)
            info.mtime = _epoch()
            tar.addfile(info, io.BytesIO(content))
    name = f"{top}.tar.gz"
    # The empty name and the time: else gzip writes those of this machine into its header.
    with (
        Path(sdist_directory, name).open("wb") as out,
        gzip.GzipFile("", "wb", fileobj=out, mtime=0) as zipped,
    ):
        zipped.write(packed.getvalue())
    return name


def _wheel(directory: str, settings: dict[str, Any], files: Files) -> str:
    project = _project()
    version = project["version"]
    platform = _platform(settings)
    program = Path(settings["program"]) if "program" in settings else _build_program()
    data = f"linkspan-{version}.data"
    script = f"{data}/scripts/{program.name}"
    files = {**files, script: program.read_bytes()}
    for name, content in _pages(program):
        files[f"{data}/data/{name}"] = content
    for name, content in _metadata(project, platform).items():
        files[f"linkspan-{version}.dist-info/{name}"] = content
    record = f"linkspan-{version}.dist-info/RECORD"
    lines = [f"{name},{_digest(content)},{len(content)}" for name, content in sorted(files.items())]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    name = f"linkspan-{version}-py3-none-{platform}.whl"
    with zipfile.ZipFile(Path(directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path in sorted(files):
            info = zipfile.ZipInfo(path, time.gmtime(_epoch())[:6])
            info.create_system = 3
            info.external_attr = (0o100755 if path == script else 0o100644) << 16
            wheel.writestr(info, files[path], zipfile.ZIP_DEFLATED, 9)
    return name


def _build_program() -> Path:
    command = ["cargo", "build", "--locked", "--profile", "shipped", "--package", "linkspan"]
    command += ["--bin", "linkspan", "--message-format", "json-render-diagnostics"]
    try:
        printed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    except FileNotFoundError:
        raise SystemExit(
            "linkspan is built with cargo, which is not on the PATH: install Rust from"
            " https://rustup.rs, or a wheel of linkspan for your platform"
        ) from None
    messages = [json.loads(line) for line in printed.splitlines()]
    found = [it["executable"] for it in messages if it.get("executable")]
    return Path(found[-1])


def _platform(settings: dict[str, Any]) -> str:
    own = re.sub("[-.]", "_", sysconfig.get_platform())
    return str(settings.get("platform", own))


def _pages(program: Path) -> Iterator[tuple[str, bytes]]:
    """Yield manual pages and completions, which the program prints itself."""

    def printed(*words: str) -> bytes:
        return subprocess.run([program, *words], check=True, stdout=subprocess.PIPE).stdout

    main = printed("man")
    yield "share/man/man1/linkspan.1", main
    for command in re.findall(r"^linkspan\\-(\S+)\(1\)$", main.decode(), re.MULTILINE):
        command = command.replace(r"\-", "-")
        yield f"share/man/man1/linkspan-{command}.1", printed("man", command)
    for shell, path in COMPLETIONS.items():
        yield path, printed("completions", shell)


def _modules() -> Iterator[tuple[str, bytes]]:
    for path in sorted((MODULES / "linkspan").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(MODULES).as_posix(), path.read_bytes()


def _sources() -> Iterator[tuple[str, bytes]]:
    """Yield the tracked files of the sources, with links replaced by what they lead to."""
    command = ["git", "ls-files", "-z", "--", *SOURCES]
    try:
        listed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        raise SystemExit("the archive of the sources is made from a git checkout") from None
    for name in listed.decode().split("\0")[:-1]:
        path = ROOT / name
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in inside:
            if file.is_file():
                yield file.relative_to(ROOT).as_posix(), file.read_bytes()


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]
    return {**project, "version": workspace["package"]["version"]}


def _metadata(project: dict[str, Any], platform: str) -> Files:
    lines = ["Wheel-Version: 1.0", "Generator: linkspan", "Root-Is-Purelib: false"]
    lines += [f"Tag: py3-none-{it}" for it in platform.split(".")]
    files = {
        "METADATA": _core_metadata(project),
        "WHEEL": "\n".join([*lines, ""]).encode(),
        "entry_points.txt": _entry_points(project["entry-points"]),
    }
    for name in project["license-files"]:
        files[f"licenses/{name}"] = (ROOT / name).read_bytes()
    return files


def _entry_points(groups: dict[str, dict[str, str]]) -> bytes:
    lines = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()), ""]
    return "\n".join(lines).encode()


def _with_extra(requirement: str, extra: str) -> str:
    """Return a requirement that is one of an extra; it may have a condition of its own."""
    name, _, condition = requirement.partition(";")
    marker = f"extra == '{extra}'"
    return f"{name.strip()} ; {f'({condition.strip()}) and {marker}' if condition else marker}"


def _core_metadata(project: dict[str, Any]) -> bytes:
    rest = dict(project)
    for elsewhere in ["dynamic", "entry-points"]:
        rest.pop(elsewhere)
    readme = rest.pop("readme")
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {rest.pop('name')}",
        f"Version: {rest.pop('version')}",
        f"Summary: {rest.pop('description')}",
        f"Keywords: {','.join(rest.pop('keywords'))}",
        *(f"Classifier: {it}" for it in rest.pop("classifiers")),
        *(f"Project-URL: {name}, {url}" for name, url in rest.pop("urls").items()),
        f"License-Expression: {rest.pop('license')}",
        *(f"License-File: {it}" for it in rest.pop("license-files")),
        f"Requires-Python: {rest.pop('requires-python')}",
    ]
    for extra, needed in rest.pop("optional-dependencies").items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {_with_extra(it, extra)}" for it in needed]
    if rest:
        raise SystemExit(f"pyproject.toml has {', '.join(rest)}, which the build does not know")
    lines.append("Description-Content-Type: text/markdown")
    return "\n".join([*lines, "", (ROOT / readme).read_text("utf-8")]).encode()


def _digest(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return f"sha256={digest.rstrip(b'=').decode()}"


def _epoch() -> int:
    # Zip knows no time before 1980.
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315_532_800)
