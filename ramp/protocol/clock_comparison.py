"""How far a party's clock is from the bank's, as NTP finds it out (RFC 5905, section 8): one question, one answer.

The bank states its time in an answer that it seals, to a question with an identifier that nobody has seen before. So it
was stated after the question had been sent and before the answer came, however long either was on the way and whoever
kept or repeated it: an old answer answers no question that is open. Half the round trip is all that remains uncertain.

The seal of such an answer may be of any age by the clock that it is to correct (`ramp.model.acl.ANY_AGE`).
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
"""A clock that is certainly further from the bank's than this is wrong, and its owner is told."""


def compare(sent: Instant, received: Instant, stated: Instant) -> ClockCompared:
    """How far the own clock is ahead of one that stated its time between two instants of the own.

    Args:
        sent: by the own clock, when the question went out.
        received: by the own clock, when the answer came in.
        stated: by the other clock, somewhen between.
    """
    uncertainty = (received - sent + 1) // 2
    offset = (sent + received) // 2 - stated
    return ClockCompared(offset, uncertainty, abs(offset) - uncertainty > OFFSET_MAX)


def offset_text(compared: ClockCompared) -> str:
    """A sentence for people that says how far the clock is from the bank's."""
    side = "ahead of" if compared.offset > 0 else "behind"
    return (
        f"the clock here is {seconds(abs(compared.offset)):.3f} s {side} the bank's, give or take "
        f"{seconds(compared.uncertainty):.3f} s; right would be at most {seconds(OFFSET_MAX):g} s"
    )


class ClockComparison:
    """One party's comparison of its clock with the bank's.

    Args:
        name: of the party.
        bank: name of the Banking Agent.

    Attributes:
        known: the last comparison, or None before the first, and after the clock has been set.
    """

    def __init__(self, name: str, bank: str) -> None:
        self.known: ClockCompared | None = None
        self._name = name
        self._bank = bank
        self._asked: tuple[str, Instant] | None = None

    def ask(self, query_id: str, now: Instant) -> list[Effect]:
        """Ask the bank for its time; a question that has not been answered by then is given up.

        Args:
            query_id: never used before, and not to be guessed.
            now: the present.
        """
        self._asked = query_id, now
        question = ClockQuery(query_id)
        return [Send(Message(Performative.QUERY_REF, self._name, self._bank, query_id, question, reply_with=query_id))]

    def answered(self, message: Message, reading: ClockReading, now: Instant) -> list[Effect]:
        """The bank has stated its time; what answers no open question is ignored.

        Raises:
            RemoteProtocolError: if it is not the bank's own word.
        """
        said_by(message, self._bank, Role.BANK)
        if self._asked is None or self._asked[0] != reading.query_id:
            return []
        self.known = compare(self._asked[1], now, reading.bank_time)
        self._asked = None
        return [Report(self.known)]

    def clock_set(self) -> None:
        """The clock has been set, and perhaps the bank's with it: nothing is known any more, and no answer counts."""
        self.known = self._asked = None

    @property
    def warning(self) -> str:
        """That the clock is wrong and by how much; the empty string where it is right, or not known to be wrong."""
        return offset_text(self.known) if self.known is not None and self.known.wrong else ""

    def refusal(self, limit: Duration) -> str:
        """Why nothing can be bought while the clock is further off than a limit, or the empty string."""
        known = self.known
        if known is None or abs(known.offset) - known.uncertainty <= limit:
            return ""
        return (
            f"{offset_text(known)}, and nobody takes messages that are more than {seconds(limit):g} s off; "
            "set the clock and submit again"
        )
