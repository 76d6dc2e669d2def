"""A slow line in user space: passes TCP streams on, every chunk after its time on the line.

Run on a host in front of its server's port. A chunk takes latency and jitter; one that would be lost waits for TCP's
retransmission instead, and all behind it wait with it, as in a TCP stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys

CHUNK_BYTES = 65_536
RETRANSMISSION_S = 0.2
"""TCP's least retransmission time-out on Linux."""


class Line:
    """One direction of one connection.

    Args:
        latency_s: time on the line.
        jitter_s: mean of an exponential delay on top.
        loss: probability that a chunk needs a retransmission.
        source: of randomness.
    """

    def __init__(self, latency_s: float, jitter_s: float, loss: float, source: random.Random) -> None:
        self._latency_s, self._jitter_s, self._loss = latency_s, jitter_s, loss
        self._random = source
        self._last = 0.0

    def arrival(self, now: float) -> float:
        """When a chunk sent now arrives; never before an earlier one."""
        at = now + self._latency_s
        if self._jitter_s:
            at += self._random.expovariate(1 / self._jitter_s)
        while self._loss and self._random.random() < self._loss:
            at += RETRANSMISSION_S
        self._last = max(self._last, at)
        return self._last


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: Line) -> None:
    """Pass one direction on until it ends."""
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        """Write each chunk when it arrives, in order."""
        while True:
            at, chunk = await chunks.get()
            await asyncio.sleep(max(0.0, at - loop.time()))
            if not chunk:
                break
            writer.write(chunk)
            await writer.drain()

    delivering = asyncio.create_task(deliver())
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(CHUNK_BYTES):
            chunks.put_nowait((line.arrival(loop.time()), chunk))
    chunks.put_nowait((line.arrival(loop.time()), b""))
    with contextlib.suppress(ConnectionError):
        await delivering
    writer.close()


async def serve(host: str, port: int, to_port: int, latency_s: float, jitter_s: float, loss: float, seed: int) -> None:
    """Relay connections from `port` to `to_port` for ever, with a mean exponential jitter and a loss probability.

    The latency holds in each direction; the seed draws jitter and losses.
    """
    source = random.Random(seed)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client to the server behind, both ways with delays of their own."""
        try:
            behind_reader, behind_writer = await asyncio.open_connection(host, to_port)
        except ConnectionError:
            writer.close()
            return
        await asyncio.gather(
            pass_on(reader, behind_writer, Line(latency_s, jitter_s, loss, source)),
            pass_on(behind_reader, writer, Line(latency_s, jitter_s, loss, source)),
        )

    async with await asyncio.start_server(connected, host, port) as server:
        await server.serve_forever()


def main() -> int:
    """Run a slow line until SIGTERM, as the only argument says: the arguments of `serve` as JSON."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(**json.loads(sys.argv[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
