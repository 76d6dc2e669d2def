"""A party's comparison of its clock with the bank's, as in NTP (RFC 5905, section 8): one question, one answer.

The bank seals its time in an answer to a question with a fresh identifier. So it stated the time after the question was
sent and before the answer came, however long either was delayed or by whom. An old answer matches no open question. The
uncertainty is half the round trip.

The seal of such an answer may have any age by the clock that it corrects (`ramp.model.acl.ANY_AGE`).
"""

from __future__ import annotations

from typing import Final

from ramp.model.acl import Message, Performative
from ramp.model.contents import ClockQuery, ClockReading
from ramp.model.instant import SECOND, Duration, Instant, seconds
from ramp.model.seal import Role
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Report, Send
from ramp.protocol.progress import ClockCompared

OFFSET_MAX: Final[Duration] = SECOND
"""Maximum certain offset from the bank's clock; beyond it the owner gets a warning."""


def compare(sent: Instant, received: Instant, stated: Instant) -> ClockCompared:
    """Return how far the own clock is ahead of another.

    Args:
        sent: by the own clock, when the question was sent.
        received: by the own clock, when the answer arrived.
        stated: by the other clock, between the two.
    """
    uncertainty = (received - sent + 1) // 2
    offset = (sent + received) // 2 - stated
    return ClockCompared(offset, uncertainty, abs(offset) - uncertainty > OFFSET_MAX)


def offset_text(compared: ClockCompared) -> str:
    """Return a sentence that states the clock's offset from the bank's."""
    side = "ahead of" if compared.offset > 0 else "behind"
    return (
        f"the clock here is {seconds(abs(compared.offset)):.3f} s {side} the bank's (uncertainty "
        f"{seconds(compared.uncertainty):.3f} s), expected at most {seconds(OFFSET_MAX):g} s"
    )


class ClockComparison:
    """One party's comparison of its clock with the bank's.

    Attributes:
        known: the last comparison; None before the first, and after the clock was set.
    """

    def __init__(self, name: str, bank: str) -> None:
        self.known: ClockCompared | None = None
        self._name = name
        self._bank = bank
        self._asked: tuple[str, Instant] | None = None

    def ask(self, query_id: str, now: Instant) -> list[Effect]:
        """Ask the bank for its time, and give up an earlier question."""
        self._asked = query_id, now
        question = ClockQuery(query_id)
        return [Send(Message(Performative.QUERY_REF, self._name, self._bank, query_id, question, reply_with=query_id))]

    def answered(self, message: Message, reading: ClockReading, now: Instant) -> list[Effect]:
        """Take the bank's answer to the open question; ignore any other.

        Raises:
            RemoteProtocolError: if the bank did not seal it.
        """
        said_by(message, self._bank, Role.BANK)
        if self._asked is None or self._asked[0] != reading.query_id:
            return []
        self.known = compare(self._asked[1], now, reading.bank_time)
        self._asked = None
        return [Report(self.known)]

    def clock_set(self, by: Duration) -> None:
        """Forget the comparison, and ignore answers to earlier questions."""
        self.known = self._asked = None

    @property
    def warning(self) -> str:
        """Sentence about the clock's offset; empty if the clock is right or the offset unknown."""
        return offset_text(self.known) if self.known is not None and self.known.wrong else ""

    def refusal(self, limit: Duration) -> str:
        """Return why the clock is too far off to buy, or the empty string."""
        known = self.known
        if known is None or abs(known.offset) - known.uncertainty <= limit:
            return ""
        return (
            f"{offset_text(known)}; other parties refuse messages more than {seconds(limit):g} s off; "
            "set the clock and submit again"
        )
