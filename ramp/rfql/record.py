"""Documents as data: the fields of a content's dataclass give its writer and its reader.

Every document of the market is one element named after its content. A field is an attribute, or what its type says:
a tuple is one child element a value, a dataclass one child element, and `Signed` and `Seal` documents that are passed
on as escaped text. `WORDS` and `_SPECIAL` have the few child elements of another form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import UnionType
from typing import Any, Final, Generic, TypeVar, get_args, get_origin, get_type_hints

from ramp.errors import DocumentError, SealInvalid
from ramp.model import contents
from ramp.model.acl import Message
from ramp.model.agreement import PricePaid, Signed
from ramp.model.contents.jobs import Delivery, JobState
from ramp.model.offer import RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit
from ramp.model.seal import Seal
from ramp.rfql import request_for_quotation
from ramp.rfql.signing import seals
from ramp.rfql.xml import markup
from ramp.rfql.xml.namespaces import MARKET
from ramp.rfql.xml.parser import Element

SEALED: Final = "SealedMessage"
SIGNED: Final = "SignedDocument"

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Proofs:
    """Checks the documents that another one passes on; each raises `DocumentError` if one does not hold.

    Attributes:
        verify: reads a signed document.
        open: reads a sealed message.
    """

    verify: Callable[[str], Signed]
    open: Callable[[str], Message]


def _nothing_to_check(_text: str) -> Any:
    raise DocumentError("this document cannot pass on another one")


NO_PROOFS: Final = Proofs(_nothing_to_check, _nothing_to_check)
"""For documents that pass nothing on."""


def write_signed(signed: Signed) -> str:
    """Write the element that passes on a signed document; `DocumentError` if it is not signed."""
    if not signed.document:
        raise DocumentError(f"{type(signed.body).__name__} is not signed")
    return f"<{SIGNED}>{markup.escape_text(signed.document)}</{SIGNED}>"


def write_sealed(seal: Seal) -> str:
    """Write the element that passes on a sealed message; `DocumentError` if the seal has no text."""
    if not seal.text:
        raise DocumentError(f"the passed-on message of {seal.signer} is not sealed")
    return f"<{SEALED}>{markup.escape_text(seal.text)}</{SEALED}>"


def read_sealed(element: Element, kind: type[Kind], proofs: Proofs) -> tuple[Kind, Seal]:
    """Read the `SealedMessage` in an element, and its seal.

    Raises:
        DocumentError: if the seal does not hold, or the content is of another kind.
    """
    text = element.findtext(f"{{{MARKET}}}{SEALED}") or ""
    # Checked before opening: a passed-on message passes on no other, so opening ends.
    document = seals.parse(text).document
    if document != kind.__name__:
        raise SealInvalid(f"wrong document in the sealed message: got a {document}, expected a {kind.__name__}")
    message = proofs.open(text)
    if not isinstance(message.content, kind) or message.seal is None:
        raise SealInvalid(f"the sealed message contains no {kind.__name__}")
    return message.content, message.seal


@dataclass(frozen=True, slots=True)
class Form:
    """Writer and reader of a value in an attribute."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]


TEXT: Final = Form(markup.escape_attribute, str)
SENTENCE: Final = Form(markup.escape_sentence, str)
INTEGER: Final = Form(str, int)
REAL: Final = Form(repr, float)
BOOLEAN: Final = Form(lambda value: "true" if value else "false", lambda text: text in {"true", "1"})
INSTANT: Final = Form(markup.write_instant, markup.read_instant)
DURATION: Final = Form(markup.write_duration, markup.read_duration)

FORMS: Final = {
    "bool": BOOLEAN,
    "Delivery": Form(str, Delivery),
    "Duration": DURATION,
    "float": REAL,
    "Instant": INSTANT,
    "int": INTEGER,
    "JobState": Form(str, JobState),
    "RefusalCode": Form(str, RefusalCode),
}
"""Form of an attribute by the type of its field; for a text see `form_of`."""

SENTENCES: Final = frozenset({"detail", "memo", "nearest", "ordered_for", "placement", "reason"})
"""Fields with a text for people, which is cut and made printable."""


def form_of(name: str, kind: str) -> Form:
    """Return the form of a field with a name and a type as written in its dataclass."""
    kind = kind.removesuffix(" | None")
    if kind == "str":
        return SENTENCE if name in SENTENCES else TEXT
    return FORMS[kind]


def attribute_name(name: str) -> str:
    """Return the attribute for a field: `request_id` becomes `requestId`."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


Value = TypeVar("Value")

ELEMENTS: Final[Mapping[type, str]] = {contents.StatementLine: "Line"}
"""Names of elements that are not those of their contents."""

TEXTS: Final[Mapping[type, str]] = {
    contents.JobInputPiece: "data",
    contents.JobOutput: "data",
    contents.JobVariable: "value",
    contents.MachineStatus: "snapshot",
}
"""Fields that are the text of their element."""


@dataclass(frozen=True, slots=True)
class Nested:
    """Writer and reader of a child element.

    Attributes:
        tag: of the element.
        is_many: whether the field is a tuple with one element a value; else it may be None.
    """

    tag: str
    write: Callable[[Any], str]
    read: Callable[[Element, Proofs], Any]
    is_many: bool = False


class Record(Generic[Value]):
    """Writer and reader of one document, by the fields of its dataclass, in their order; made by `record_of`.

    Attributes are left out while they have their default.
    """

    def __init__(self, content: type[Value]) -> None:
        self.content = content
        self.element = ELEMENTS.get(content, content.__name__)
        self.tag = f"{{{MARKET}}}{self.element}"
        self._text = TEXTS.get(content, "")
        self._nested: dict[str, Nested] = {}
        self._sealed: dict[str, tuple[str, type]] = {}  # by the field of a seal, field and type of what it seals
        hints = get_type_hints(content)
        flat = []
        for item in fields(content):  # type: ignore[arg-type]
            hint = hints[item.name]
            if hint is Seal:
                sealed = item.name.removesuffix("_seal")
                self._sealed[item.name] = sealed, hints[sealed]
            elif (nested := WORDS[item.name] if hint == tuple[str, ...] else _nested(hint)) is not None:
                self._nested[item.name] = nested
            elif item.name != self._text:
                flat.append(item)
        for sealed, _ in self._sealed.values():
            del self._nested[sealed]
        # an attribute is optional exactly where the field has a default: the schemas say the same
        self._attributes = tuple(
            (item.name, attribute_name(item.name), form.write, form.read, item.default)
            for item in flat
            for form in (form_of(item.name, str(item.type)),)
        )

    def write(self, value: Value, *, root: bool = True) -> str:
        """Return the value as XML text.

        Args:
            value: of the content's class.
            root: whether it is the root and so declares its namespace.

        Raises:
            DocumentError: for text that XML cannot carry.
        """
        parts = [f'<{self.element} xmlns="{MARKET}"' if root else f"<{self.element}"]
        for name, attribute, write, _, default in self._attributes:
            item = getattr(value, name)
            if default is MISSING or item != default:
                parts.append(f' {attribute}="{write(item)}"')
        if self._text:
            return f"{''.join(parts)}>{markup.escape_text(getattr(value, self._text))}</{self.element}>"
        inside = []
        for name, nested in self._nested.items():
            item = getattr(value, name)
            if nested.is_many:
                inside += [nested.write(each) for each in item]
            elif item is not None:
                inside.append(nested.write(item))
        inside += [write_sealed(getattr(value, name)) for name in self._sealed]
        head = "".join(parts)
        return f"{head}>{''.join(inside)}</{self.element}>" if inside else f"{head}/>"

    def read(self, element: Element, proofs: Proofs = NO_PROOFS) -> Value:
        """Read an element that has passed the schema check.

        Raises:
            DocumentError: if a document that it passes on is invalid.
            ValueError: for values that the schema lets pass but that cannot be represented (the year 0000).
        """
        values: dict[str, Any] = {}
        get = element.get
        for name, attribute, _, read, _ in self._attributes:
            text = get(attribute)
            if text is not None:
                values[name] = read(text)
        if self._text:
            values[self._text] = element.text or ""
        for name, nested in self._nested.items():
            if nested.is_many:
                values[name] = tuple([nested.read(child, proofs) for child in element.iterchildren(nested.tag)])
            elif (child := element.find(nested.tag)) is not None:
                values[name] = nested.read(child, proofs)
        for name, (sealed, kind) in self._sealed.items():
            values[sealed], values[name] = read_sealed(element, kind, proofs)
        return self.content(**values)


_RECORDS: Final[dict[type, Record[Any]]] = {}


def record_of(content: type[Value]) -> Record[Value]:
    """Return writer and reader of a content's documents, made at the first use."""
    if content not in _RECORDS:
        _RECORDS[content] = Record(content)
    return _RECORDS[content]


def _nested(hint: Any) -> Nested | None:
    """Return the child element of a field of this type, or None for an attribute."""
    if isinstance(hint, UnionType):
        hint = next(each for each in get_args(hint) if each is not type(None))
    if hint in _SPECIAL:
        return _SPECIAL[hint]
    is_many = get_origin(hint) is tuple
    if is_many:
        hint = get_args(hint)[0]
    if not (isinstance(hint, type) and is_dataclass(hint)):
        return None
    record = record_of(hint)
    return Nested(record.tag, lambda value: record.write(value, root=False), record.read, is_many)


def _write_price(price: PricePaid) -> str:
    head = f'<PricePaid rule="{TEXT.write(price.rule)}"'
    if price.runner_up is None or price.seal is None:
        return f"{head}/>"
    return f'{head} offerId="{TEXT.write(price.runner_up.offer_id)}">{write_sealed(price.seal)}</PricePaid>'


def _read_price(element: Element, proofs: Proofs) -> PricePaid:
    rule, offer_id = element.get("rule", ""), element.get("offerId")
    if offer_id is None and not len(element):
        return PricePaid(rule)
    proposal, seal = read_sealed(element, contents.Proposal, proofs)
    meant = [offer for offer in proposal.offers if offer.offer_id == offer_id]
    if len(meant) != 1:
        found = "more than once" if meant else "not"
        raise DocumentError(f"PricePaid: offerId {offer_id!r} is {found} in the proposal of {seal.signer}")
    return PricePaid(rule, meant[0], seal)


WORDS: Final[Mapping[str, Nested]] = {
    "names": Nested(
        f"{{{MARKET}}}Agent",
        lambda name: f'<Agent name="{TEXT.write(name)}"/>',
        lambda element, _: element.get("name", ""),
        True,
    ),
    "arguments": Nested(
        f"{{{MARKET}}}JobArgument",
        lambda word: f"<JobArgument>{markup.escape_text(word)}</JobArgument>",
        lambda element, _: element.text or "",
        True,
    ),
}
"""Child elements of fields with several texts, by the names of the fields."""

_SPECIAL: Final[Mapping[Any, Nested]] = {
    RequestForQuotation: Nested(
        request_for_quotation.ROOT,
        request_for_quotation.write_request,
        lambda element, _: request_for_quotation.read_request(element),
    ),
    RequestUnit: Nested(
        f"{{{MARKET}}}Unit",
        lambda unit: f'<Unit number="{unit.number}">{request_for_quotation.write_unit(unit, root=True)}</Unit>',
        lambda element, _: request_for_quotation.read_unit(element[0], int(element.get("number", ""))),
    ),
    PricePaid: Nested(f"{{{MARKET}}}PricePaid", _write_price, _read_price),
    Signed: Nested(
        f"{{{MARKET}}}SignedDocument", write_signed, lambda element, proofs: proofs.verify(element.text or "")
    ),
}
"""Child elements of another form than their type's."""
