"""The bank's part where a seller takes cores back: it alone says that this is by right, and since when it is told.

The seller brings its own signed reclamation with the agreement of both, and all that was posted of the slot; so the
bank judges minimum, refund and compensation by what the buyer has signed, and the notice by its own clock. Buyer and
seller are told alike. It keeps the document, so a buyer who has missed something need not rely on its seller: it asks
what has changed the slot as it knows it.
"""

from __future__ import annotations

from collections.abc import Callable

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Amendment, Reclamation, Signed, first_signer
from ramp.model.contents import (
    ReclamationNotice,
    ReclamationNoticed,
    ReclamationPosted,
    ReclamationQuery,
    ReclamationRefused,
    ReclamationTaken,
    Unverified,
)
from ramp.model.instant import Instant
from ramp.model.seal import Role
from ramp.model.sizes.amended import SlotState, first_state
from ramp.model.sizes.reclaimed import changed, reclamation_problem
from ramp.protocol.belief import sealed_lately
from ramp.protocol.effects import Effect, Send, reply
from ramp.protocol.reclaiming.asking import (
    STILL_OPEN,
    LookUpReclamation,
    NoteReclamation,
    PostReclamation,
    ReclamationKnown,
)
from ramp.protocol.timing import Timing


def is_about(message: Message) -> bool:
    """Whether a message is about a reclamation."""
    content = message.content
    if isinstance(content, Unverified):
        return content.kind == "reclamation"
    return isinstance(content, ReclamationNotice | ReclamationTaken | ReclamationQuery)


def asked(message: Message, bank: str, now: Instant, timing: Timing, wait: Callable[[Message], str]) -> Effect:
    """What follows when a seller brings a reclamation, or its buyer asks for one: a question to the ledger, or a no.

    Args:
        message: as it came.
        bank: the bank's name.
        now: the present.
        timing: the protocol's limits.
        wait: keeps the message until the ledger has answered, and names the question.

    Raises:
        RemoteProtocolError: if it is not its sender's own word, said lately; if a document is not signed by those who
            must have signed it.
    """
    content = message.content
    if isinstance(content, ReclamationQuery):
        sealed_lately(message, Role.USER, now, timing)
        return LookUpReclamation(wait(message), content.agreement_id, content.number, message.sender, content.state)
    if isinstance(content, Unverified):
        raise RemoteProtocolError(f"the reclamation does not verify: {content.code}: {content.detail}")
    seal = sealed_lately(message, Role.RESOURCE, now, timing)
    if isinstance(content, ReclamationTaken):
        return PostReclamation(wait(message), content.agreement_id, content.number, message.sender, seal.text)
    assert isinstance(content, ReclamationNotice)
    reclamation, agreement, state = _brought(content, message.sender, bank)
    problem = reclamation_problem(agreement, state, reclamation)
    if problem is not None:
        refused = ReclamationRefused(reclamation.agreement_id, reclamation.number, *problem)
        return reply(message, Performative.REFUSE, refused)
    right = agreement.request.reclaim
    assert right is not None, "it fits the agreement"
    return NoteReclamation(wait(message), reclamation, not content.changes, right.notice, seal.text)


def _brought(notice: ReclamationNotice, sender: str, bank: str) -> tuple[Reclamation, Agreement, SlotState]:
    """The reclamation, the agreement, and the state of the slot that the documents make."""
    reclamation, agreement = notice.reclamation.body, notice.agreement.body
    if not isinstance(reclamation, Reclamation) or not isinstance(agreement, Agreement):
        raise RemoteProtocolError("the documents are no reclamation and its agreement")
    if notice.reclamation.signers != (sender,) or reclamation.resource != sender:
        raise RemoteProtocolError("the reclamation is not signed by its sender, and by its sender only")
    if notice.agreement.signers != (agreement.user, agreement.resource):
        raise RemoteProtocolError("the agreement is not signed by both of its parties")
    if agreement.bank != bank:
        raise RemoteProtocolError(f"the agreement names {agreement.bank} as its bank")
    state = first_state(agreement)
    parties = (agreement.user, agreement.resource)
    for signed in notice.changes:
        change = signed.body
        if not isinstance(change, Amendment | Reclamation) or change.previous != state.digest:
            raise RemoteProtocolError("what was posted of the slot does not follow each other from the agreement on")
        if (change.user, change.resource) != parties:
            raise RemoteProtocolError("what was posted of the slot is between other parties")
        if signed.signers != (parties if isinstance(change, Amendment) else (first_signer(change),)):
            raise RemoteProtocolError("what was posted of the slot lacks a signature")
        state = changed(state, change)
    return reclamation, agreement, state


def told(found: ReclamationKnown, message: Message) -> list[Effect]:
    """What whoever has asked is told, and where something has happened the buyer too."""
    if found.code:
        refused = ReclamationRefused(found.agreement_id, found.number, found.code, found.detail)
        return [reply(message, Performative.REFUSE, refused)]
    if found.reclamation is not None:
        return _followed(found, found.reclamation, message)
    word: ReclamationNoticed | ReclamationPosted
    if found.transfer_id:
        word = _posted(found)
    elif isinstance(message.content, ReclamationNotice):
        reclamation = message.content.reclamation
        word = ReclamationNoticed(found.agreement_id, found.number, found.noticed_at, reclamation)
    else:
        still = ReclamationRefused(found.agreement_id, found.number, STILL_OPEN, "nothing is decided of it yet")
        return [reply(message, Performative.REFUSE, still)]
    if isinstance(message.content, ReclamationQuery):
        return [reply(message, Performative.INFORM, word)]
    to_buyer = Message(Performative.INFORM, message.receiver, found.user, message.conversation_id, word)
    return [reply(message, Performative.AGREE, word), Send(to_buyer)]


def _followed(found: ReclamationKnown, reclamation: Signed, message: Message) -> list[Effect]:
    """What a buyer is told who asks what has changed the slot as it knows it: the document, which alone has the size.

    That it is posted comes first: then the buyer takes it for what it is, and not for what is to come.
    """
    noticed = ReclamationNoticed(found.agreement_id, found.number, found.noticed_at, reclamation)
    told = [reply(message, Performative.INFORM, noticed)]
    if found.transfer_id:
        told.insert(0, reply(message, Performative.INFORM, _posted(found)))
    return [*told]


def _posted(found: ReclamationKnown) -> ReclamationPosted:
    return ReclamationPosted(found.agreement_id, found.number, found.transfer_id, found.refund, found.compensation)
