"""Flat documents as data: one table of fields per document gives its writer and its reader.

Most documents of the market are one element with attributes, some with children of the same kind. The modules of their
families declare them, and contain hand-written code for special ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, Generic, TypeVar

from ramp.model.contents.jobs import Delivery, JobState
from ramp.model.offer import RefusalCode
from ramp.rfql.xml import markup
from ramp.rfql.xml.namespaces import MARKET
from ramp.rfql.xml.parser import Element


@dataclass(frozen=True, slots=True)
class Form:
    """Writer and reader of a value in an attribute."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]


def _read_boolean(text: str) -> bool:
    return text in {"true", "1"}


TEXT: Final = Form(markup.escape_attribute, str)
SENTENCE: Final = Form(markup.escape_sentence, str)
INTEGER: Final = Form(str, int)
REAL: Final = Form(repr, float)
BOOLEAN: Final = Form(lambda value: "true" if value else "false", _read_boolean)
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


class Words:
    """Writer and reader of an element that holds only a text.

    Args:
        element: its name.
    """

    def __init__(self, element: str) -> None:
        self.element = element
        self.tag = f"{{{MARKET}}}{element}"

    def write(self, value: str, *, root: bool) -> str:
        return f"<{self.element}>{markup.escape_text(value)}</{self.element}>"

    def read(self, element: Element) -> str:
        return element.text or ""


class Record(Generic[Value]):
    """Writer and reader of one flat document.

    Args:
        content: the dataclass; its name is the element's name unless `element` says otherwise.
        children: record of each field that holds a tuple of values, in schema order.
        text: the field that is the element's text, or empty.
        element: name of the element.

    All other fields are attributes, in their order; their types give their forms. They are left out while they have
    their default.
    """

    def __init__(
        self,
        content: type[Value],
        *,
        children: Mapping[str, Record[Any] | Words] | None = None,
        text: str = "",
        element: str = "",
    ) -> None:
        self.content = content
        self.element = element or content.__name__
        self.tag = f"{{{MARKET}}}{self.element}"
        self._text = text
        self._children = dict(children or {})
        # an attribute is optional exactly where the field has a default: the schemas say the same
        self._attributes = tuple(
            (item.name, attribute_name(item.name), form.write, form.read, item.default)
            for item in fields(content)  # type: ignore[arg-type]
            if item.name not in self._children and item.name != text
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
        head = self.open_tag(value, root=root)
        if self._text:
            return f"{head}>{markup.escape_text(getattr(value, self._text))}</{self.element}>"
        inside = "".join(
            record.write(child, root=False) for name, record in self._children.items() for child in getattr(value, name)
        )
        return f"{head}>{inside}</{self.element}>" if inside else f"{head}/>"

    def open_tag(self, value: Any, *, root: bool) -> str:
        """Return the start tag with its attributes, without the closing bracket."""
        parts = [f'<{self.element} xmlns="{MARKET}"' if root else f"<{self.element}"]
        for name, attribute, write, _, default in self._attributes:
            item = getattr(value, name)
            if default is MISSING or item != default:
                parts.append(f' {attribute}="{write(item)}"')
        return "".join(parts)

    def read(self, element: Element) -> Value:
        """Read an element that has passed the schema check.

        Raises:
            ValueError: for values that the schema lets pass but that cannot be represented (the year 0000).
        """
        values = self.attributes(element)
        if self._text:
            values[self._text] = element.text or ""
        for name, record in self._children.items():
            values[name] = tuple(record.read(child) for child in element.iterchildren(record.tag))
        return self.content(**values)

    def attributes(self, element: Element) -> dict[str, Any]:
        """Return the values of all present attributes, by field name."""
        values: dict[str, Any] = {}
        get = element.get
        for name, attribute, _, read, _ in self._attributes:
            text = get(attribute)
            if text is not None:
                values[name] = read(text)
        return values
