"""A TCP server that says exactly what it is told, in its own thread: outlives the loops of what it tests."""

from __future__ import annotations

import asyncio
import enum
import queue
import re
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Self

import attrs

CERTIFICATE = Path(__file__).parent / "loopback.pem"
EXPIRED = CERTIFICATE.with_name("expired.pem")
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


class Step(enum.Enum):
    """What to do besides writing bytes."""

    CLOSE = "end the connection in order"
    RESET = "break the connection off"
    HANG = "do nothing more until the client hangs up"
    TLS = "go on under TLS"


@attrs.frozen
class Drip:
    """One byte every so many seconds, for ever."""

    byte: bytes
    every: float


Script = Sequence[bytes | Step | Drip]


def server_tls(certificate: Path = CERTIFICATE) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def client_tls(certificate: Path = CERTIFICATE) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


class RawServer:
    """Answers each request by the script of its target; unknown targets get `OK`.

    `requests` are the bytes received, `connections` how many were accepted. `arrivals` and `hangups` can be
    waited on: a request was read, a connection was ended by the client (both carry the target).
    """

    def __init__(self, *, tls: bool | Path = False, unread: bool = False) -> None:
        self.scripts: dict[str, Script] = {}
        self.requests: list[bytes] = []
        self.connections = 0
        self.arrivals: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.hangups: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.port = 0
        self._tls = tls
        self._unread = unread
        self._writers: set[asyncio.StreamWriter] = set()
        self._accepted: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(300)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(300)

    def url(self, target: str, *, scheme: str = "http") -> str:
        return f"{scheme}://127.0.0.1:{self.port}{target}"

    def broadcast(self, data: bytes) -> None:
        """Write to every open connection, asked or not, and return when that is done."""

        async def write() -> None:
            for writer in self._writers:
                writer.write(data)
                await writer.drain()

        asyncio.run_coroutine_threadsafe(write(), self._loop).result(60)

    def hang_up(self) -> None:
        """End every open connection, and return when that is done."""

        async def close() -> None:
            for writer in list(self._writers):
                writer.close()
                await writer.wait_closed()

        asyncio.run_coroutine_threadsafe(close(), self._loop).result(60)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        certificate = self._tls if isinstance(self._tls, Path) else CERTIFICATE
        context = server_tls(certificate) if self._tls else None
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self._loop.set_exception_handler(lambda loop, context: None)  # broken connections are the point
        server = await asyncio.start_server(self._accept, sock=listener, ssl=context)
        self._ready.set()
        await self._stop.wait()
        self._loop.remove_reader(listener)
        await asyncio.sleep(0)  # a closed server drops, unclosed, what it accepted a moment before
        server.close()
        await self._end()

    async def _end(self) -> None:
        """Leave no connection behind, whether it has sent anything yet or does not read what it is sent."""
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.wait(others)
        for writer in self._accepted:
            writer.transport.abort()
        for _ in range(3):  # under TLS one end follows the other
            await asyncio.sleep(0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Known from its first moment: a task that is cancelled before it begins could not close it."""
        self._accepted.append(writer)
        task = asyncio.ensure_future(self._connection(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            if self._unread:
                await self._stop.wait()
            async for target in self._read_requests(reader):
                script = self.scripts.get(target, (OK,))
                try:
                    goes_on = await self._play(script, target, reader, writer)
                except ConnectionError:  # the client left unread what was answered
                    self.hangups.put(target)
                    break
                if not goes_on:
                    break
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _read_requests(self, reader: asyncio.StreamReader) -> AsyncIterator[str]:
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)\r\ncontent-length: (\d+)", request)
            request += await reader.readexactly(int(length[1]) if length else 0)
            self.requests.append(request)
            target = request.split()[1].decode()
            self.arrivals.put(target)
            yield target

    async def _play(
        self, script: Script, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the connection goes on."""
        for step in script:
            match step:
                case bytes():
                    writer.write(step)
                    await writer.drain()
                case Drip(byte, every):
                    await self._drip(byte, every, target, reader, writer)
                    return False
                case Step.TLS:
                    await writer.start_tls(server_tls())
                case Step.HANG:
                    await reader.read()
                    self.hangups.put(target)
                    return False
                case Step.RESET:
                    linger = struct.pack("ii", 1, 0)
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    return False
                case Step.CLOSE:
                    return False
        return True

    async def _drip(
        self,
        byte: bytes,
        every: float,
        target: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        gone = asyncio.ensure_future(reader.read())
        while not gone.done():
            writer.write(byte)
            await asyncio.wait([gone], timeout=every)
        self.hangups.put(target)
