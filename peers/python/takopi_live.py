"""Lets the real takopi run the backends of `linkspan.takopi`: from its config to the message in a chat.

usage: takopi_live.py LINKSPAN SCRIPTED_MODEL AGENTS

Everything but Telegram is takopi's own: the plug-ins it finds, its settings, router, bridge and
presenter. The agents in the folder AGENTS are the real ones, on a scripted model. Python 3.14 with
takopi, and the package of linkspan as a distribution that is installed.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LINKSPAN, MODEL, AGENTS = sys.argv[1:]
FOLDER = Path(tempfile.mkdtemp(prefix="linkspan-takopi-"))
# Every process of this test has it in its environment, so that those that are left are found.
MARK = f"LINKSPAN_TAKOPI_TEST={os.getpid()}"
# Longer than anything here takes on a busy machine.
PATIENCE = 120.0

BACKENDS = ["linkspan", *(f"linkspan_{it}" for it in ["claude", "codex", "gemini", "opencode", "openhands"])]

SCENARIO = {
    "lanes": {
        "one": [{"blocks": [{"text": "The first answer."}]}],
        "two": [{"blocks": [{"text": "The second answer."}]}],
        "dash": [{"blocks": [{"text": "A dash is fine."}]}],
        "tool": [{"blocks": [{"tool": "Bash", "input": {"command": "touch begun; sleep 120"}}]}],
        "broken": [{"status": 400, "message": "the model is out of order"}],
        "slow": [{"blocks": [{"text": "tick ", "times": 40}], "chunk": 5, "chunk_delay_ms": 20}],
    },
    "repeat": "last",
}


def furnish():
    """An empty home with linkspan's config in it, and a model; returns the model's process."""
    for name in ["home/.config/linkspan", "home/.gemini", "home/.takopi", "project", "tmp"]:
        (FOLDER / name).mkdir(parents=True)
    (FOLDER / "scenario.json").write_text(json.dumps(SCENARIO))
    model = subprocess.Popen(
        [MODEL, "--scenario", FOLDER / "scenario.json"], stdout=subprocess.PIPE, text=True
    )
    url = model.stdout.readline().split()[-1]
    scripted = "model_providers.scripted"
    codex = {
        "model": "gpt-5.5",
        "model_provider": "scripted",
        f"{scripted}.name": "scripted",
        f"{scripted}.base_url": f"{url}/v1",
        f"{scripted}.env_key": "DUMMY_KEY",
        f"{scripted}.wire_api": "responses",
    }
    args = [word for key, value in codex.items() for word in ("-c", f"{key}={json.dumps(value)}")]
    config = f"""
        start_timeout = 0
        [engines.claude]
        program = {json.dumps(f"{AGENTS}/claude")}
        use_api_billing = true
        env = {{ IS_SANDBOX = "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = "1" }}
        [engines.codex]
        program = {json.dumps(f"{AGENTS}/codex")}
        args = {json.dumps([*args, "-c", "analytics.enabled=false"])}
        [engines.opencode]
        program = {json.dumps(f"{AGENTS}/opencode")}
        model = "scripted/m1"
        [engines.gemini]
        program = {json.dumps(f"{AGENTS}/gemini")}
        model = "gemini-2.5-flash"
    """
    (FOLDER / "home/.config/linkspan/config.toml").write_text(config)
    gemini = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"enableAutoUpdate": False}}
    (FOLDER / "home/.gemini/settings.json").write_text(json.dumps(gemini))
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "dummy"},
        "models": {"m1": {"limit": {"context": 1_000_000, "output": 8_000}}},
    }
    opencode = {
        "provider": {"scripted": provider},
        "enabled_providers": ["scripted"],
        "model": "scripted/m1",
        "small_model": "scripted/m1",
        "autoupdate": False,
        "share": "disabled",
    }
    kept = {it: os.environ[it] for it in ("PATH", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE") if it in os.environ}
    os.environ.clear()
    os.environ.update(
        kept,
        HOME=str(FOLDER / "home"),
        TMPDIR=str(FOLDER / "tmp"),
        LINKSPAN_BIN=LINKSPAN,
        ANTHROPIC_BASE_URL=url,
        ANTHROPIC_API_KEY="dummy",
        DUMMY_KEY="dummy",
        GOOGLE_GEMINI_BASE_URL=url,
        GEMINI_API_KEY="dummy",
        OPENCODE_CONFIG_CONTENT=json.dumps(opencode),
        OPENCODE_DISABLE_AUTOUPDATE="1",
        OPENCODE_DISABLE_MODELS_FETCH="1",
        OPENCODE_DISABLE_LSP_DOWNLOAD="1",
        **dict([MARK.split("=")]),
    )
    os.chdir(FOLDER / "project")
    return model


model = furnish()

# Only now: takopi finds its config in the home it is imported with.
import anyio  # noqa: E402
from takopi.api import (  # noqa: E402
    ConfigError,
    ExecBridgeConfig,
    IncomingMessage,
    MessageRef,
    ResumeToken,
    StartedEvent,
    handle_message,
)
from takopi.logging import setup_logging  # noqa: E402
from takopi.markdown import MarkdownPresenter  # noqa: E402
from takopi.runtime_loader import build_runtime_spec  # noqa: E402
from takopi.settings import load_settings  # noqa: E402

os.environ["TAKOPI_LOG_LEVEL"] = "critical"
setup_logging(debug=False)

CONFIG = FOLDER / "home/.takopi/takopi.toml"
TELEGRAM = """
transport = "telegram"
[transports.telegram]
bot_token = "1:a"
chat_id = 1
"""


def runtime(default, tables=""):
    """What takopi makes of a config with these tables."""
    CONFIG.write_text(f'default_engine = "{default}"\n{TELEGRAM}\n{tables}')
    settings, path = load_settings(CONFIG)
    return build_runtime_spec(settings=settings, config_path=path).to_runtime(config_path=path)


class Chat:
    """A transport that keeps what is said."""

    def __init__(self):
        self.messages = {}
        self.n_sent = 0

    async def close(self):
        pass

    async def send(self, *, channel_id, message, options=None):
        self.n_sent += 1
        self.messages[self.n_sent] = message.text
        if options and options.replace:
            self.messages.pop(options.replace.message_id, None)
        return MessageRef(channel_id=channel_id, message_id=self.n_sent)

    async def edit(self, *, ref, message, wait=True):
        self.messages[ref.message_id] = message.text
        return ref

    async def delete(self, *, ref):
        return self.messages.pop(ref.message_id, None) is not None

    def last(self):
        """The last message, without the time it took."""
        return re.sub(r" · \d[\dhms ]*\b", "", self.messages[max(self.messages)], count=1)


async def tell(takopi, text, reply_text=None, tasks=None):
    """What takopi does with a message: the last one that it answers with."""
    resolved = takopi.resolve_message(text=text, reply_text=reply_text)
    runner = takopi.resolve_runner(
        resume_token=resolved.resume_token, engine_override=resolved.engine_override
    ).runner
    chat = Chat()
    await handle_message(
        ExecBridgeConfig(transport=chat, presenter=MarkdownPresenter(), final_notify=True),
        runner=runner,
        incoming=IncomingMessage(channel_id=1, message_id=1, text=resolved.prompt),
        resume_token=resolved.resume_token,
        strip_resume_line=takopi.is_resume_line,
        running_tasks=tasks,
    )
    return chat.last()


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r}, expected {wanted!r}")


async def is_listed():
    # As the command does, with its own eyes on what is installed.
    code = "from takopi.cli import main; main()"
    said = subprocess.run(
        [sys.executable, "-c", code, "plugins", "--load"], capture_output=True, text=True, check=True
    ).stdout
    equal([line.split()[0] for line in said.splitlines() if line.endswith("(linkspan)")], BACKENDS)
    equal("errors:" in said, False)


async def config_errors():
    for backend, table, wanted in [
        ("linkspan_claude", 'models = "m"', "`linkspan_claude.models` in {} is not known; there are model, permissions, allowed_tools, denied_tools, program"),
        ("linkspan_codex", "model = 5", "`linkspan_codex.model` in {} takes a text, not 5"),
        ("linkspan_claude", 'allowed_tools = "Bash"', "`linkspan_claude.allowed_tools` in {} takes a list of texts, not 'Bash'"),
        ("linkspan_claude", "allowed_tools = []", '`linkspan_claude.allowed_tools` in {} is empty; to allow nothing, set `permissions = "deny"`'),
        ("linkspan_claude", 'engine = "codex"', "`linkspan_claude.engine` in {} is not taken: the engine is claude; `[linkspan]` takes one"),
    ]:
        try:
            runtime(backend, f"[{backend}]\n{table}\n")
        except ConfigError as err:
            equal(str(err), wanted.format(CONFIG))
        else:
            raise AssertionError(f"{table} was taken")


async def recording():
    takopi = runtime("linkspan", '[linkspan]\nengine = "replay:tools"\n')
    said = await tell(takopi, "play it")
    equal(said.splitlines()[0], "done · linkspan · step 7")
    # A recording has nothing to resume, and the reason is what the chat shows.
    said = await tell(takopi, "again", said)
    error = "a recording has no sessions to resume\nhint: leave `--resume`, `--continue` and `--fork` out"
    equal(said.partition("\n\n")[2].partition("\n\n")[0], error)


async def two_prompts(backend):
    takopi = runtime(backend)
    first = await tell(takopi, "please [[lane:one]]")
    command = f"linkspan run --engine {backend.partition('_')[2]} --resume"
    if backend == "linkspan":
        command = "linkspan run --resume"
    head, _, session = first.rpartition(f"\n\n`{command} ")
    equal(head, f"done · {backend}\n\nThe first answer.")
    second = await tell(takopi, "please [[lane:two]]", first)
    equal(second, f"done · {backend}\n\nThe second answer.\n\n`{command} {session}")
    # The line is a command that works elsewhere, too, and one that linkspan reads in a prompt.
    said = subprocess.run(
        [LINKSPAN, "run", "--to", "takopi", f"please [[lane:two]]\n`{command} {session}"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )
    equal(json.loads(said.stdout.splitlines()[0])["resume"]["value"], session.rstrip("`"))


async def any_engine():
    os.environ["LINKSPAN_ENGINE"] = "claude"
    try:
        await two_prompts("linkspan")
    finally:
        del os.environ["LINKSPAN_ENGINE"]


async def dash():
    said = await tell(runtime("linkspan_claude"), "--help me [[lane:dash]]")
    equal(said.startswith("done · linkspan_claude\n\nA dash is fine.\n\n"), True)


async def failing():
    said = await tell(runtime("linkspan_claude"), "please [[lane:broken]]")
    equal(said.startswith("error · linkspan_claude"), True)
    equal("the model is out of order" in said, True)
    said = await tell(runtime("linkspan_claude", '[linkspan_claude]\nprogram = "/nowhere/claude"\n'), "hi")
    equal(said.startswith("error · linkspan_claude"), True)
    equal("/nowhere/claude" in said, True)


async def cancelled():
    takopi = runtime("linkspan_claude", '[linkspan_claude]\npermissions = "allow"\n')
    tasks = {}
    said = []
    async with anyio.create_task_group() as group:

        async def run():
            said.append(await tell(takopi, "please [[lane:tool]]", tasks=tasks))

        group.start_soon(run)
        while not Path("begun").exists():
            await anyio.sleep(0.02)
        next(iter(tasks.values())).cancel_requested.set()
    parts = said[0].split("\n\n")
    equal(parts[:2], ["`cancelled` · linkspan_claude · step 1", "▸ `touch begun; sleep 120`"])
    equal(parts[2].startswith("`linkspan run --engine claude --resume "), True)
    await nothing_left()


async def nothing_left():
    deadline = time.monotonic() + 20
    while left := [it for it in running() if it != os.getpid()]:
        if time.monotonic() > deadline:
            raise AssertionError(f"still running: {[command(it) for it in left]}")
        await anyio.sleep(0.05)


def running():
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if MARK.encode() in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)
        except OSError:
            pass  # It has ended meanwhile.


def command(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


async def one_at_a_time():
    takopi = runtime("linkspan_claude")
    runner = takopi.resolve_runner(resume_token=None, engine_override=None).runner
    events = [it async for it in runner.run("please [[lane:one]]", None)]
    session = next(it for it in events if isinstance(it, StartedEvent)).resume
    equal(session, ResumeToken(engine="linkspan_claude", value=session.value))
    seen = []

    async def run(name):
        async for _ in runner.run("please [[lane:slow]]", session):
            seen.append(name)

    async with anyio.create_task_group() as group:
        group.start_soon(run, "a")
        group.start_soon(run, "b")
    equal(seen, sorted(seen))
    equal(set(seen), {"a", "b"})


CASES = [
    ("listed", is_listed),
    ("config errors", config_errors),
    ("a recording", recording),
    *((f"two prompts with {it}", lambda it=it: two_prompts(it)) for it in BACKENDS if it not in ("linkspan", "linkspan_openhands")),
    ("two prompts with any engine", any_engine),
    ("a prompt with a dash", dash),
    ("a failing run", failing),
    ("a run that is cancelled", cancelled),
    ("one run of a session at a time", one_at_a_time),
    ("nothing is left", nothing_left),
]


async def main():
    failures = 0
    for name, case in CASES:
        try:
            began = time.monotonic()
            with anyio.fail_after(PATIENCE):
                await case()
            print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr)
        except Exception as err:
            failures += 1
            print(f"{name}: {type(err).__name__}: {err}")
    print(f"{len(CASES) - failures} passed, {failures} failed")
    return failures


failures = anyio.run(main)
model.kill()
model.wait()
subprocess.run(["rm", "-rf", str(FOLDER)], check=True)
sys.exit(failures != 0)
