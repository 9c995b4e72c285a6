"""What the scripts that try a bridge have in common: cases, one after the other, that are named and timed."""

import asyncio
import contextlib
import faulthandler
import os
import sys
import time
import traceback
from pathlib import Path


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"got {got!r}, expected {wanted!r}")


def run_cases(cases, patience, only=()):
    """Run the cases, or those of these names, and return how many have failed; each has so many seconds."""
    if unknown := set(only) - {name for name, _ in cases}:
        sys.exit(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(name for name, _ in cases)}")
    return asyncio.run(_run_cases([it for it in cases if not only or it[0] in only], patience))


async def _run_cases(cases, patience):
    n_failed = 0
    for name, case in cases:
        began = time.monotonic()
        # A case that blocks the loop cannot be cancelled: it ends this program, which shows where it was.
        faulthandler.dump_traceback_later(patience + 30, exit=True)
        try:
            await asyncio.wait_for(case(), patience)
        except Exception as err:
            n_failed += 1
            reason = f"it did not end in {patience:.0f} s" if isinstance(err, TimeoutError) else f"{type(err).__name__}: {err}"
            print(f"{name}: {reason}{_place(err)}", flush=True)
        else:
            print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(f"{len(cases) - n_failed} passed, {n_failed} failed")
    return n_failed


def _place(err):
    """The line of the script that the case was at."""
    name = os.path.basename(sys.argv[0])
    lines = [it.lineno for it in traceback.extract_tb(err.__traceback__) if os.path.basename(it.filename) == name]
    return f" ({name}:{lines[-1]})" if lines else ""


def processes_with(variable):
    """The processes that have a variable, `NAME=VALUE`, in the environment they were started with."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        # One that has ended meanwhile.
        with contextlib.suppress(OSError):
            if variable.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.add(int(folder.name))
    return found


def command_of(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return "(ended)"
