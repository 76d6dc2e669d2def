"""How many requests an office looks at: of each sender, and of all together, in a minute."""

from __future__ import annotations

from ramp.model.instant import MINUTE, Duration, Instant


class Attempts:
    """Counts attempts in minutes that begin with the first one.

    The limit over all senders is there because a site may send under as many names as it likes: it bounds what the
    authority does for strangers, whoever they are, and how many names are counted at a time.

    Args:
        per_sender: attempts of one sender in a minute.
        in_all: attempts of all senders in a minute.
    """

    def __init__(self, per_sender: int, in_all: int) -> None:
        self._per_sender = per_sender
        self._in_all = in_all
        self._begun: Instant | None = None
        self._total = 0
        self._by_sender: dict[str, int] = {}

    def allowed(self, sender: str, now: Instant) -> bool:
        """Count an attempt; whether it is within both limits. One that is not within its sender's counts for him only.

        Args:
            sender: who makes it.
            now: the present.
        """
        if self._begun is None or now - self._begun >= MINUTE:
            self._begun, self._total = now, 0
            self._by_sender.clear()
        count = self._by_sender.get(sender, 0)
        if count >= self._per_sender or self._total >= self._in_all:
            return False
        self._by_sender[sender] = count + 1
        self._total += 1
        return True

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: the minute lasts as long as before."""
        if self._begun is not None:
            self._begun += by
