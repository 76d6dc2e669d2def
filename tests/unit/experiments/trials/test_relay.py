"""The slow line in user space: order, latency and losses."""

import asyncio
import random
from pathlib import Path

import pytest

from ramp.declarations import load_file

TWO_HOSTS = load_file(Path(__file__).parents[4] / "examples" / "studies" / "two_hosts.py")
RETRANSMISSION_S, Line, pass_on = TWO_HOSTS.RETRANSMISSION_S, TWO_HOSTS.Line, TWO_HOSTS.pass_on


def test_chunks_arrive_in_order_after_their_latency() -> None:
    line = Line(0.02, 0.005, 0.1, random.Random(3))
    arrivals = [line.arrival(now / 100) for now in range(500)]
    assert arrivals == sorted(arrivals)
    assert all(arrival >= now / 100 + 0.02 for now, arrival in enumerate(arrivals))


def test_losses_cost_retransmissions() -> None:
    """With a second between chunks none waits for another: the mean is latency + loss / (1 - loss) retransmissions."""
    line = Line(0.01, 0.0, 0.25, random.Random(4))
    delays = [line.arrival(now * 10.0) - now * 10.0 for now in range(20_000)]
    assert sum(delays) / len(delays) == pytest.approx(0.01 + RETRANSMISSION_S / 3, rel=0.05)
    assert min(delays) == pytest.approx(0.01)


async def test_bytes_are_passed_on_unchanged_until_the_end() -> None:
    sent = random.Random(5).randbytes(300_000)
    received = bytearray()
    done = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.extend(await reader.read())
        writer.close()
        done.set()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        source = asyncio.StreamReader()
        source.feed_data(sent)
        source.feed_eof()
        await pass_on(source, writer, Line(0.001, 0.0, 0.0, random.Random(1)))
        await asyncio.wait_for(done.wait(), 300)
    assert bytes(received) == sent
