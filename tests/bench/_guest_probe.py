"""Times the rounds of auctions over real XMPP with whatever version of the market is on the path; see `guests`.

It uses only what both versions have: the supervisor, the control channel, and the configuration that it is given.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

from _submission import children_of, submit, swarm

from ramp.model.instant import HOUR, MINUTE
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.rfql.request_for_quotation import write_request
from ramp.runtime.clock import SystemClock
from ramp.runtime.state_folder import StateFolder

WARM_UP = 3
ROUNDS = 3


def _rounds(state: StateFolder) -> list[float]:
    """Durations of an auction's rounds, in seconds; every resource answers each with an offer."""
    start = SystemClock().now() // MINUTE * MINUTE + 5 * MINUTE
    unit = RequestUnit(1, 100_000, start + 2 * HOUR, TotalCores(16), not_before=start, wall_time=HOUR)
    ended = submit(state, write_request(RequestForQuotation((unit,))), rounds=ROUNDS, quote_only=True)
    assert len(ended.rounds) == ROUNDS, ended
    assert "no_answer" not in ended.refusals, ended
    return list(ended.rounds)


def main(config: str, repeats: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        state = StateFolder(Path(folder) / "state")
        swarm.start_detached(Path(config), state)
        try:
            for _ in range(WARM_UP):
                _rounds(state)
            found = [duration for _ in range(repeats) for duration in _rounds(state)]
            memory = sum(each.memory_full_info().uss for each in children_of(state))
        finally:
            swarm.stop(state)
    print(json.dumps({"median": statistics.median(found), "longest": max(found), "memory": memory}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
