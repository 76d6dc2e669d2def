"""How one message becomes another: fields changed, values of elsewhere put in, signatures and seals made anew.

All of it under the liar's own key. What others have signed or sealed is passed on as it was, for nobody can do more.
"""

from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import Any, Final

from ramp.errors import DocumentError
from ramp.model.acl import CONTENT_OF, SEALED, Message, Performative
from ramp.model.agreement import Agreement, ContractChange, Signed
from ramp.model.contents import Content
from ramp.model.instant import Instant
from ramp.model.offer import Offer
from ramp.model.ports import Notary
from ramp.model.request import RequestUnit
from ramp.model.seal import Seal
from ramp.model.sizes.moldable import price_with
from ramp.rfql.documents import CHECKS

KEPT_MAX: Final = 40
"""Values of one field that are remembered; more would only dilute the recent ones."""

LATER: Final = frozenset({"price", "rule"})
"""Fields that are passed over while they say nothing: they came later, and a seed draws what it drew before."""

PERFORMATIVE_OF: Final[dict[type, Performative]] = {
    kind: performative for performative, kinds in reversed(CONTENT_OF.items()) for kind in kinds
}


def missized(offer: Offer, unit: RequestUnit, random: Random) -> Offer:
    """An honest offer with a size, time or cost that the unit does not allow; the same where the unit has one size."""
    terms, length = unit.moldable, offer.end - offer.start
    if terms is None:
        return offer
    too_dear = price_with(unit, offer.cores, length) + random.choice((1, 10, 100))
    too_short = length * random.choice((1, 2, 3)) // 4
    return random.choice(
        (
            replace(offer, cores=max(1, terms.least - 1), cpu_hour_cost=1),
            replace(offer, end=offer.start + max(1, too_short)),
            replace(offer, cpu_hour_cost=too_dear),
        )
    )


class Scraps:
    """Values that a liar has come across, by the name of the field that they stood in."""

    def __init__(self) -> None:
        self._values: dict[str, list[Any]] = {}

    def keep(self, value: Any) -> None:
        """Keep the fields of a content, and of what stands in it."""
        for field in fields(value):
            found = getattr(value, field.name)
            kept = self._values.setdefault(field.name, [])
            if found not in kept:
                kept.append(found)
                del kept[:-KEPT_MAX]
            for each in found if isinstance(found, tuple) else (found,):
                if is_dataclass(each) and not isinstance(each, type | Seal):
                    self.keep(each)

    def some(self, name: str, random: Random) -> Any:
        """Some value of a field, or None if none was seen."""
        kept = self._values.get(name)
        return random.choice(kept) if kept else None


class Forger:
    """Changes contents and makes messages of them, under the liar's own key."""

    def __init__(self, name: str, notary: Notary, random: Random) -> None:
        self.scraps = Scraps()
        self._name = name
        self._notary = notary
        self._random = random

    def reshaped(self, value: Any, now: Instant, depth: int = 0) -> Any:
        """A value with one field changed: another that was seen in its place, a little more or less, or a part of it.

        `depth` is how far below the content it stands.
        """
        if isinstance(value, Signed):
            body = self.reshaped(value.body, now, depth) if self._random.random() < 0.7 else value.body
            return self.signed(body if body != value.body else value, now)
        names = [field.name for field in fields(value) if field.name not in LATER or getattr(value, field.name)]
        name = self._random.choice(names)
        old = getattr(value, name)
        new = self._changed(name, old, now, depth)
        try:
            formed = replace(value, **{name: new})
            if isinstance(formed, ContractChange):
                CHECKS[ContractChange](formed)
        except (ValueError, TypeError, AssertionError, DocumentError):  # the model or any reader refuses it
            return value
        return formed

    def _changed(self, name: str, old: Any, now: Instant, depth: int) -> Any:
        random = self._random
        if isinstance(old, bool) or old is None:
            return old
        if isinstance(old, int):
            return random.choice((old + 1, max(0, old - 1), old * 10, self._seen(name, old)))
        if isinstance(old, tuple) and old:
            return random.choice((old[:-1], (*old, old[0]), tuple(reversed(old)), self._seen(name, old)))
        if is_dataclass(old) and not isinstance(old, Seal) and depth < 3 and random.random() < 0.7:
            return self.reshaped(old, now, depth + 1)
        return self._seen(name, old)

    def _seen(self, name: str, old: Any) -> Any:
        found = self.scraps.some(name, self._random)
        return found if isinstance(found, type(old)) else old

    def signed(self, document: Signed | Any, now: Instant) -> Signed:
        """A body signed by the liar alone, or a document of others countersigned by it."""
        signed = document if isinstance(document, Signed) else Signed(document)
        return signed if self._name in signed.signers else self._notary.sign(signed, now)

    def message(self, receiver: str, conversation_id: str, content: Content, now: Instant, reply: str = "") -> Message:
        """A message of the liar's, sealed by it."""
        performative = PERFORMATIVE_OF[type(content)]
        if isinstance(content, Signed):
            is_agreement = isinstance(content.body, Agreement)
            performative = Performative.REQUEST if is_agreement or self._random.random() < 0.5 else Performative.CANCEL
        made = Message(performative, self._name, receiver, conversation_id, content, reply_with=reply)
        return self.sealed(made, now)

    def sealed(self, message: Message, now: Instant) -> Message:
        """The message with a new seal where its content needs one."""
        bare = replace(message, seal=None)
        return self._notary.seal(bare, now) if type(message.content) in SEALED else bare
