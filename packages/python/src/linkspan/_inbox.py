"""A queue that one thread fills and anybody empties, with or without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """What a reader thread has received and nobody has taken yet.

    It has no bound: replies come through the same pipe as events, so a reader that waited for a
    slow consumer would keep that consumer's own requests from being answered. What piles up is at
    most the rest of a run.
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._end: Exception | None = None
        self._changed = threading.Condition()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def put(self, item: T) -> None:
        """Add an item."""
        with self._changed:
            self._items.append(item)
            self._wake()

    def end(self, error: Exception) -> None:
        """End the inbox: once it is empty, taking from it raises this error."""
        with self._changed:
            if self._end is None:
                self._end = error
            self._wake()

    def take(self, timeout: float | None = None) -> T | None:
        """Wait for an item; `None` when the time is over."""
        with self._changed:
            ready = self._changed.wait_for(lambda: self._items or self._end, timeout)
            return self._pop() if ready else None

    async def atake(self) -> T:
        """Wait for an item without blocking the event loop. Nothing is lost if it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            with self._changed:
                if self._items or self._end:
                    return self._pop()
                woken: asyncio.Future[None] = loop.create_future()
                self._waiting.append((loop, woken))
            await woken

    def _pop(self) -> T:
        if self._items:
            return self._items.popleft()
        assert self._end is not None
        # The same error may be raised many times; each time with its own traceback.
        raise self._end.with_traceback(None)

    def _wake(self) -> None:
        self._changed.notify_all()
        waiting, self._waiting = self._waiting, []
        for loop, woken in waiting:
            try:
                loop.call_soon_threadsafe(_set, woken)
            except RuntimeError:
                # The loop was closed while its task still waited.
                pass


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
