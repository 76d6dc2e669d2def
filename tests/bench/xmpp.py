"""The market over real XMPP: the paper's twenty resources, its round and its ten-round auction.

The reference is the paper itself (Table 4): there a round lasts its fixed interval, here until the last answer is in.
Each server (embedded, and Prosody where it is installed) runs the swarm of `agents_config/swarms/table2.toml`.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path

from ramp.client import swarm
from ramp.client.portal import connected
from ramp.control.events import RequestEnded
from ramp.control.requests import Submit
from ramp.model.instant import HOUR, MINUTE
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol.events import AuctionOptions
from ramp.protocol.outcome import RequestOutcome
from ramp.rfql.request_for_quotation import write_request
from ramp.runtime.clock import SystemClock
from ramp.runtime.state_folder import StateFolder

PAPER_TEN_ROUNDS_S = 151.26
PAPER_ONE_ROUND_S = 18.81
REPEATS = 5
TABLE2 = Path(__file__).parents[2] / "agents_config" / "swarms" / "table2.toml"


def _request() -> str:
    now = SystemClock().now() // MINUTE * MINUTE
    start = now + 5 * MINUTE
    unit = RequestUnit(1, 70, start + 2 * HOUR, TotalCores(16), not_before=start, wall_time=HOUR)
    return write_request(RequestForQuotation((unit,)))


def auction(state: StateFolder, rounds: int, *, quote_only: bool) -> RequestOutcome:
    """Have `user1` buy or quote one unit of Table 2's market; return the outcome."""
    with connected(state.socket("user1")) as line:
        options = AuctionOptions(rounds=rounds, quote_only=quote_only)
        *_, ended = line.events(Submit(_request(), options=options))
    assert isinstance(ended, RequestEnded), ended
    assert ended.outcome.status in ("committed", "quoted"), ended
    return ended.outcome


def _measure(kind: str) -> list[tuple[str, float, str]]:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "swarm.toml"
        config.write_text(TABLE2.read_text("utf-8").replace('kind = "embedded"', f'kind = "{kind}"'), "utf-8")
        state = StateFolder(Path(folder) / "state")
        begin = SystemClock().now()
        swarm.start_detached(config, state)
        launched = SystemClock().now() - begin
        try:
            auction(state, 3, quote_only=True)  # warm-up: connections, caches
            rounds = [r for _ in range(REPEATS) for r in auction(state, 5, quote_only=True).rounds]
            one = statistics.median(record.duration for record in rounds) / 1e6
            ten = statistics.median(auction(state, 10, quote_only=False).duration for _ in range(REPEATS)) / 1e6
            single = statistics.median(auction(state, 1, quote_only=False).duration for _ in range(REPEATS)) / 1e6
        finally:
            swarm.stop(state)
    return [
        (f"{kind}: launch of 20 resources, 30 users, bank, directory", launched / 1e6, "s"),
        (f"{kind}: one round, 20 resources", one * 1e3, "ms"),
        (f"{kind}: 1-round auction with commitment and payment", single, "s"),
        (f"{kind}: 10-round auction with commitment and payment", ten, "s"),
        (f"{kind}: paper's 1 round / ours", PAPER_ONE_ROUND_S / single, "x"),
        (f"{kind}: paper's 10 rounds / ours", PAPER_TEN_ROUNDS_S / ten, "x"),
    ]


def run() -> list[tuple[str, float, str]]:
    """Measure over the servers that are here."""
    kinds = ["embedded"] + (["prosody"] if shutil.which("prosody") else [])
    return [row for kind in kinds for row in _measure(kind)]
