"""Times purchases over real XMPP with whatever version of the market is on the path; run by `tests.bench.purchase`.

It uses only what both versions have: the supervisor, the control channel, and the swarm of Table 2.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

import psutil
from _submission import children_of, submit, swarm

from ramp.model.instant import HOUR, MINUTE
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.rfql.request_for_quotation import write_request
from ramp.runtime.clock import SystemClock
from ramp.runtime.state_folder import StateFolder

WARM_UP = 3


def _purchase(state: StateFolder, rounds: int) -> float:
    start = SystemClock().now() // MINUTE * MINUTE + 5 * MINUTE
    unit = RequestUnit(1, 70, start + 2 * HOUR, TotalCores(16), not_before=start, wall_time=HOUR)
    ended = submit(state, write_request(RequestForQuotation((unit,))), rounds=rounds)
    assert ended.status == "committed", ended
    return ended.duration


def _measure(state: StateFolder, rounds: int, repeats: int) -> tuple[float, float]:
    """Median duration of a purchase, and the processor time of all processes of the market for one; in seconds."""
    market = children_of(state)
    begin = _used(market)
    seconds = statistics.median([_purchase(state, rounds) for _ in range(repeats)])
    return seconds, (_used(market) - begin) / repeats


def _used(processes: list[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


def main(config: str, repeats: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        state = StateFolder(Path(folder) / "state")
        swarm.start_detached(Path(config), state)
        try:
            for _ in range(WARM_UP):
                _purchase(state, 1)
            found = {rounds: _measure(state, rounds, repeats) for rounds in (1, 10)}
        finally:
            swarm.stop(state)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
