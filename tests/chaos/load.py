"""Steady load on a market: each user buys one request after another, whatever becomes of the market meanwhile."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from ramp.client.connecting import connect
from ramp.client.request import RequestTemplate, request
from ramp.errors import RampError
from ramp.runtime.state_folder import StateFolder

PAUSE_S: Final = 0.2
"""Pause of a user between two requests, in seconds: the load is bounded."""

AWAY_PAUSE_S: Final = 1.0
"""The same where the market is not there, in seconds."""

NO_ANSWER: Final = "no answer"

PRICE: Final = 90
"""Most that users pay, credits per core hour: every machine may sell."""

HOURS_AHEAD: Final = (3, 200)
"""When the slots begin that are asked for: none is over before the run is."""

CORES_MAX: Final = 64
UNITS_MAX: Final = 2
ROUNDS: Final = 3


@dataclass(slots=True)
class Load:
    """What the users ask for and how it ends.

    Attributes:
        seed: of what is asked for.
        outcomes: how requests ended, with the number of each; `no answer` where the market was not there.
        commits: when purchases were committed, in seconds of the monotonic clock, in order.
    """

    seed: int
    outcomes: Counter[str] = field(default_factory=Counter)
    commits: list[float] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, users: Sequence[tuple[StateFolder, str]]) -> None:
        """Let users begin, each by the state folder of its site and its local name."""
        for number, (state, user) in enumerate(users):
            random = Random(self.seed * 1_000 + number)
            thread = threading.Thread(target=self._buy_on, args=(state, user, random), name=f"load {user}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self, limit_s: float) -> bool:
        """Let the users end what they have begun; False where one does not within the limit."""
        self._stopping.set()
        end = time.monotonic() + limit_s
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def commits_since(self, moment: float) -> list[float]:
        """When purchases were committed from a moment on."""
        with self._lock:
            return [each for each in self.commits if each >= moment]

    def _buy_on(self, state: StateFolder, user: str, random: Random) -> None:
        while not self._stopping.is_set():
            outcome = self._buy(state, user, random)
            with self._lock:
                self.outcomes[outcome] += 1
                if outcome == "committed":
                    self.commits.append(time.monotonic())
            self._stopping.wait(AWAY_PAUSE_S if outcome == NO_ANSWER else PAUSE_S)

    def _buy(self, state: StateFolder, user: str, random: Random) -> str:
        wanted = [_wanted(random) for _ in range(random.randint(1, UNITS_MAX))]
        try:
            with connect(state.path, user=user) as market:
                return market.submit(*wanted, rounds=ROUNDS).status.value
        except (RampError, OSError):  # the market is being started again
            return NO_ANSWER


def _wanted(random: Random) -> RequestTemplate:
    return request(
        price=PRICE,
        cores=random.randint(1, CORES_MAX),
        wall_time="1h",
        start=f"+{random.randint(*HOURS_AHEAD)}h",
    )
