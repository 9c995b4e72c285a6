"""Lets the real takopi run the backends of `linkspan.takopi`: from its config to the message in a chat.

usage: takopi_live.py LINKSPAN SCRIPTED_MODEL AGENTS [--every-engine] [CASE]…

Everything but Telegram is takopi's own: the plug-ins it finds, its settings, router, bridge and
presenter. The agents in the folder AGENTS are the real ones, on a scripted model. Python 3.14 with
takopi, the package of linkspan as a distribution that is installed, and the modules of its tests.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cases import command_of, equal, processes_with, run_cases
from scripted_engines import furnish, start_model

parser = argparse.ArgumentParser()
parser.add_argument("linkspan")
parser.add_argument("model")
parser.add_argument("agents", help="the folder of the agents' programs")
parser.add_argument("--every-engine", action="store_true", help="also those that take long to start")
parser.add_argument("case", nargs="*", help="only these")
OPTIONS = parser.parse_args()
LINKSPAN = OPTIONS.linkspan
FOLDER = Path(tempfile.mkdtemp(prefix="linkspan-takopi-"))
# Every process of this test has it in its environment, so that those that are left are found.
MARK = f"LINKSPAN_TAKOPI_TEST={os.getpid()}"
# Longer than anything here takes on a busy machine.
PATIENCE = 120.0

BACKENDS = ["linkspan", *(f"linkspan_{it}" for it in ["claude", "codex", "gemini", "opencode", "openhands"])]
# The plug-in does the same for each: two that start quickly are enough for most days.
QUICK = ["claude", "codex"]
SLOW = ["gemini", "opencode"]

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


def begin():
    """An empty home with linkspan's config in it, and a model; returns the model's process."""
    home = FOLDER / "home"
    for name in ["home/.takopi", "project", "tmp"]:
        (FOLDER / name).mkdir(parents=True)
    scenario = FOLDER / "scenario.json"
    scenario.write_text(json.dumps(SCENARIO))
    model, url = start_model(OPTIONS.model, scenario)
    kept = {it: os.environ[it] for it in ("PATH", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE") if it in os.environ}
    os.environ.clear()
    os.environ.update(
        kept,
        HOME=str(home),
        TMPDIR=str(FOLDER / "tmp"),
        LINKSPAN_BIN=LINKSPAN,
        **furnish(home, url, QUICK + SLOW, OPTIONS.agents),
        **dict([MARK.split("=")]),
    )
    os.chdir(FOLDER / "project")
    return model


model = begin()

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


async def is_listed():
    # As the command does, with its own eyes on what is installed.
    code = "from takopi.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "plugins", "--load"], capture_output=True, text=True, timeout=PATIENCE)
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.endswith("(linkspan)")]
    if (done.returncode, listed) != (0, BACKENDS) or "errors:" in done.stdout:
        raise AssertionError(f"`takopi plugins --load` ended with {done.returncode} and said\n{done.stdout}{done.stderr}")


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
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE,
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
    while left := processes_with(MARK) - {os.getpid()}:
        if time.monotonic() > deadline:
            raise AssertionError(f"still running: {[command_of(it) for it in left]}")
        await anyio.sleep(0.05)


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
    *(
        (f"two prompts with linkspan_{it}", lambda it=it: two_prompts(f"linkspan_{it}"))
        for it in QUICK + SLOW * OPTIONS.every_engine
    ),
    ("two prompts with any engine", any_engine),
    ("a prompt with a dash", dash),
    ("a failing run", failing),
    ("a run that is cancelled", cancelled),
    ("one run of a session at a time", one_at_a_time),
    ("nothing is left", nothing_left),
]

try:
    n_failed = run_cases(CASES, PATIENCE, OPTIONS.case)
finally:
    model.kill()
    model.wait()
    shutil.rmtree(FOLDER)
sys.exit(n_failed != 0)
