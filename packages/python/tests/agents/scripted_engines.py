"""How each engine is told, in its own way, that its model is a `scripted-model`.

For the tests here and for `peers/python/takopi_live.py`, which has another Python: nothing but the
standard library is imported.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Settings:
    """What an engine finds when it starts."""

    # Keys of `[engines.NAME]` in linkspan's config.
    keys: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    # By their paths in the home directory.
    files: dict[str, str] = field(default_factory=dict)


def start_model(program: str, scenario: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    """Start a model that plays a scenario; returns its process and its address."""
    process = subprocess.Popen(
        [program, "--scenario", scenario, *options], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    # `listening on URL`
    said = process.stdout.readline()
    assert said, f"`{program}` ended before it listened: its error is on stderr"
    return process, said.split()[-1]


def furnish(
    home: Path, url: str, engines: list[str], programs: str | None = None
) -> dict[str, str]:
    """Write linkspan's config and the files of these engines; returns the environment they need.

    `programs` is the folder that they are in, if that is not on the `PATH`.
    """
    # An engine that is slow to start on a busy machine is none that hangs.
    lines = ["start_timeout = 0"]
    env: dict[str, str] = {}
    for engine in engines:
        settings = _SETTINGS[engine](url)
        if programs is not None:
            settings.keys["program"] = f"{programs}/{engine}"
        # What JSON has for texts, truth values and lists of texts is TOML as well.
        keys = [f"{key} = {json.dumps(value)}" for key, value in settings.keys.items()]
        lines += [f"[engines.{engine}]", *keys]
        env |= settings.env
        for path, text in settings.files.items():
            _write(home / path, text)
    _write(home / ".config/linkspan/config.toml", "\n".join([*lines, ""]))
    return env


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _claude(url: str) -> Settings:
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # It refuses to allow everything to root elsewhere.
        "IS_SANDBOX": "1",
    }
    return Settings({"use_api_billing": True}, env)


def _codex(url: str) -> Settings:
    settings = {
        "model": "gpt-5.5",
        "model_provider": "scripted",
        "model_providers.scripted.name": "scripted",
        "model_providers.scripted.base_url": f"{url}/v1",
        "model_providers.scripted.env_key": "DUMMY_KEY",
        "model_providers.scripted.wire_api": "responses",
        "analytics.enabled": False,
    }
    pairs = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    args = [word for pair in pairs for word in ("-c", pair)]
    return Settings({"args": args}, {"DUMMY_KEY": "dummy"})


def _opencode(url: str) -> Settings:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "dummy"},
        "models": {"m1": {"limit": {"context": 1_000_000, "output": 8_000}}},
    }
    config = {
        "provider": {"scripted": provider},
        "enabled_providers": ["scripted"],
        "model": "scripted/m1",
        "small_model": "scripted/m1",
        "autoupdate": False,
        "share": "disabled",
    }
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")
    env = {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}
    env |= {f"OPENCODE_DISABLE_{name}": "1" for name in off}
    return Settings({"model": "scripted/m1"}, env)


def _gemini(url: str) -> Settings:
    config = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False},
    }
    return Settings(
        {"model": "gemini-2.5-flash"},
        {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "dummy"},
        {".gemini/settings.json": json.dumps(config)},
    )


_SETTINGS: dict[str, Callable[[str], Settings]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "gemini": _gemini,
}
