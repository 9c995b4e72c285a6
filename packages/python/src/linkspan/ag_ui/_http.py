"""The little HTTP that is spoken with linkspan's own server: a request, and a body as it arrives.

A connection per request, over a Unix socket: nothing belongs to an event loop, so any number of
loops may use one server. Bytes go through as they are; nothing here knows what they mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from .._errors import LinkspanError

# Bytes of a response's head, and of one piece of its body before the other side has to wait.
_LIMIT = 1 << 18


@dataclass(frozen=True)
class Address:
    """Where a server listens: a Unix socket, or a port of this machine with a token."""

    path: str | None = None
    port: int = 0
    token: str = ""

    @property
    def host(self) -> str:
        """What it is called in requests; a socket has no name, so any will do."""
        return "localhost" if self.path is not None else f"127.0.0.1:{self.port}"

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.path is not None:
            return await asyncio.open_unix_connection(self.path, limit=_LIMIT)
        return await asyncio.open_connection("127.0.0.1", self.port, limit=_LIMIT)


class Response:
    """A response whose body is still on its way. Close it: that ends the request."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        self._reader = reader
        self._writer = writer
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        pairs = (line.partition(":") for line in lines[1:] if line)
        self.headers = {name.strip().lower(): value.strip() for name, _, value in pairs}

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; a server that is gone before its end is an error."""
        try:
            if self.headers.get("transfer-encoding", "").lower() != "chunked":
                length = int(self.headers.get("content-length", "0"))
                if length:
                    yield await self._reader.readexactly(length)
                return
            rest = b""
            is_over = False
            while not is_over:
                data = await self._reader.read(_LIMIT)
                if not data:
                    raise ConnectionError("the end is missing")
                # All that is there at once: events come in bursts, and each piece has its price.
                whole, rest, is_over = _chunks(rest + data)
                if whole:
                    yield whole
        except (asyncio.IncompleteReadError, ConnectionError) as err:
            raise LinkspanError(
                "connection", "the server of linkspan ended in the middle of an answer"
            ) from err

    async def body(self) -> bytes:
        """Return the whole body."""
        return b"".join([piece async for piece in self.pieces()])

    def close(self) -> None:
        """End the request, whatever has arrived of it."""
        self._writer.close()


def _chunks(data: bytes) -> tuple[bytes, bytes, bool]:
    """Return what whole chunks hold, what follows them, and whether the last one was there."""
    found: list[bytes] = []
    at = 0
    while (line := data.find(b"\r\n", at)) >= 0:
        size = int(data[at:line], 16)
        end = line + 2 + size
        if size == 0:
            return b"".join(found), b"", True
        if len(data) < end + 2:
            break
        found.append(data[line + 2 : end])
        at = end + 2
    return b"".join(found), data[at:], False


async def send(
    address: Address, method: str, target: str, headers: Mapping[str, str], body: bytes
) -> Response:
    """Send a request and return its response once the head of it is there."""
    reader, writer = await address.connect()
    try:
        lines = [f"{method} {target} HTTP/1.1", f"host: {address.host}", "connection: close"]
        if address.token:
            lines.append(f"authorization: Bearer {address.token}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines.append(f"content-length: {len(body)}")
        writer.write("\r\n".join([*lines, "\r\n"]).encode("latin-1") + body)
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        return Response(reader, writer, head)
    except BaseException:
        writer.close()
        raise
