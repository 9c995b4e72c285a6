"""Conversations with an agent: several runs in one session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ._link import Link, Message
from ._options import Decision, Path, RunOptions, fields
from ._program import Program
from ._run import AsyncRun, Run, RunReader, afinish, finish, settle_fields
from .types import AskOpenedEvent

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Turns:
    """What is sent for each prompt of a conversation. Does no input or output."""

    def __init__(self, session: str | None, fork: str | None, options: RunOptions) -> None:
        if session is not None and fork is not None:
            raise ValueError("`session` and `fork` exclude each other")
        self.session: str | None = None
        self._resume = session
        self._fork = fork
        self._options = options

    def submit(self, prompt: str) -> dict[str, Any]:
        """The fields of `run.submit`."""
        made = fields(prompt, self._options)
        if self.session is not None:
            # The session knows where it works.
            return {**made, "session": self.session, "cwd": None}
        return {**made, "resumeId": self._resume or "new", "fork": self._fork}

    def begin(self, prompt: str, reply: Message) -> RunReader:
        """A prompt was taken, behind the event of this cursor."""
        self.session = str(reply["sessionId"])
        return RunReader(self.session, prompt, int(reply["cursor"]))


class Conversation:
    """A session of an agent, in a `linkspan` of its own.

    `session` resumes one, by linkspan's id or the agent's own, and `fork` continues in a copy of
    one; the other options are those of `run`. Nothing is started before the first prompt. With
    `async with` it becomes an `AsyncConversation`.
    """

    def __init__(
        self,
        *,
        session: str | None = None,
        fork: str | None = None,
        config: Path | None = None,
        data_dir: Path | None = None,
        env: Mapping[str, str] | None = None,
        **options: Unpack[RunOptions],
    ) -> None:
        cwd = options.get("cwd")
        if cwd is not None or (session is None and fork is None):
            # The program may be started elsewhere than where the prompt is given.
            options["cwd"] = os.path.abspath(cwd or ".")
        arguments = ["--to", "linkspan"]
        if config is not None:
            arguments += ["--config", os.fspath(config)]
        if data_dir is not None:
            arguments += ["--data-dir", os.fspath(data_dir)]
        self._set(lambda: Program(arguments, env), Turns(session, fork, options))

    @classmethod
    def _over(cls, open_link: Callable[[], Link], turns: Turns) -> Conversation:
        """A conversation over another link than a program of its own."""
        made = cls.__new__(cls)
        made._set(open_link, turns)
        return made

    def _set(self, open_link: Callable[[], Link], turns: Turns) -> None:
        self._open_link = open_link
        self._turns = turns
        self._link: Link | None = None
        self._reader: RunReader | None = None

    @property
    def session(self) -> str | None:
        """The id of the session, once the first prompt was taken."""
        return self._turns.session

    def send(self, prompt: str) -> Run:
        """Give the agent a prompt. A run that has not ended yet is aborted first."""
        return self._send(prompt, lambda: None)

    def _send(self, prompt: str, on_end: Callable[[], None]) -> Run:
        if self._link is None:
            self._link = self._open_link()
        if self._reader is not None:
            finish(self._link, self._reader)
        reply = self._link.request("run.submit", **self._turns.submit(prompt))
        self._reader = self._turns.begin(prompt, reply)
        return Run(self._link, self._reader, on_end)

    def settle(
        self,
        ask: AskOpenedEvent | str,
        decision: Decision,
        *,
        message: str | None = None,
        input: dict[str, Any] | None = None,
    ) -> None:
        """Answer what the agent asks: an `ask.opened` event, or the id of an ask."""
        if self._link is not None:
            self._link.request("ask.settle", **settle_fields(ask, decision, message, input))

    def abort(self) -> None:
        """Stop the run, if there is one; its end still comes. Any thread may call this."""
        if self._link is not None and self._reader is not None and not self._reader.ended:
            self._link.request("run.abort", sessionId=self._reader.session)

    def close(self) -> None:
        """Abort the run if there is one, and end the program. May be called again."""
        if self._link is not None:
            self._link.close()

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> AsyncConversation:
        self._async = AsyncConversation(self._open_link, self._turns)
        return self._async

    async def __aexit__(self, *_: object) -> None:
        await self._async.aclose()

    def __del__(self) -> None:
        # A constructor that has failed leaves no link.
        link: Link | None = getattr(self, "_link", None)
        if link is not None:
            link.release()


class AsyncConversation:
    """A session of an agent, for `async with linkspan.Conversation(…) as conversation`."""

    def __init__(self, open_link: Callable[[], Link], turns: Turns) -> None:
        self._open_link = open_link
        self._turns = turns
        self._link: Link | None = None
        self._reader: RunReader | None = None

    @property
    def session(self) -> str | None:
        """The id of the session, once the first prompt was taken."""
        return self._turns.session

    def send(self, prompt: str) -> AsyncRun:
        """Give the agent a prompt. A run that has not ended yet is aborted first.

        The prompt is sent when the run is iterated over.
        """

        async def on_end() -> None:
            pass

        return AsyncRun(lambda: self._start(prompt), on_end)

    async def _start(self, prompt: str) -> tuple[Link, RunReader]:
        if self._link is None:
            self._link = self._open_link()
        if self._reader is not None:
            await afinish(self._link, self._reader)
        reply = await self._link.arequest("run.submit", **self._turns.submit(prompt))
        self._reader = self._turns.begin(prompt, reply)
        return self._link, self._reader

    async def settle(
        self,
        ask: AskOpenedEvent | str,
        decision: Decision,
        *,
        message: str | None = None,
        input: dict[str, Any] | None = None,
    ) -> None:
        """Answer what the agent asks: an `ask.opened` event, or the id of an ask."""
        if self._link is not None:
            await self._link.arequest("ask.settle", **settle_fields(ask, decision, message, input))

    async def abort(self) -> None:
        """Stop the run, if there is one; its end still comes."""
        if self._link is not None and self._reader is not None and not self._reader.ended:
            await self._link.arequest("run.abort", sessionId=self._reader.session)

    async def aclose(self) -> None:
        """Abort the run if there is one, and end the program. May be called again."""
        if self._link is not None:
            await self._link.aclose()

    def __del__(self) -> None:
        if self._link is not None:
            self._link.release()


def run(
    prompt: str,
    *,
    session: str | None = None,
    fork: str | None = None,
    config: Path | None = None,
    data_dir: Path | None = None,
    env: Mapping[str, str] | None = None,
    **options: Unpack[RunOptions],
) -> Run:
    """Give an agent a prompt, and iterate over what it does.

    Unless `permissions` says otherwise they are `listed`: nobody is asked. The run is aborted when
    the loop is left early.
    """
    options.setdefault("permissions", "listed")
    conversation = Conversation(
        session=session, fork=fork, config=config, data_dir=data_dir, env=env, **options
    )
    try:
        return conversation._send(prompt, conversation.close)
    except BaseException:
        conversation.close()
        raise


def arun(
    prompt: str,
    *,
    session: str | None = None,
    fork: str | None = None,
    config: Path | None = None,
    data_dir: Path | None = None,
    env: Mapping[str, str] | None = None,
    **options: Unpack[RunOptions],
) -> AsyncRun:
    """`run` for `async for`."""
    options.setdefault("permissions", "listed")
    conversation = Conversation(
        session=session, fork=fork, config=config, data_dir=data_dir, env=env, **options
    )
    made = AsyncConversation(conversation._open_link, conversation._turns)
    return AsyncRun(lambda: made._start(prompt), made.aclose)
