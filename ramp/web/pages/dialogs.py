"""Questions before something is done, and errors at the field that they are about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement

from ramp.errors import RampError
from ramp.web.pages import frame
from ramp.web.pages.frame import Visit


@dataclass(frozen=True, slots=True)
class Asked:
    """A field of a dialog.

    Attributes:
        label: with its unit.
        read: converts the text of the field; raises `ValueError` that says what is wrong.
        value: at first.
        hint: an example.
        choices: the values to choose from; empty for any text.
    """

    label: str
    read: Callable[[str], Any] = str
    value: str = ""
    hint: str = ""
    choices: Sequence[str] = ()


def whole_number(text: str) -> int:
    """Read a whole number of at least 1, for a field of a dialog."""
    if not text.isdecimal() or not int(text):
        raise ValueError(f"got {text or 'nothing'}, expected a whole number of at least 1")
    return int(text)


async def answers(title: str, action: str, *fields: Asked, text: str = "", leave: str = "Cancel") -> list[Any] | None:
    """Ask for values, each error at its field, or only for a confirmation; returns None if the dialog was closed."""
    with ui.dialog() as dialog, ui.card().classes("ramp-card"):
        frame.subheading(title)
        if text:
            ui.label(text)
        drawn: list[ui.select | ui.input] = [
            ui.select(list(each.choices), label=each.label, value=each.value)
            if each.choices
            else ui.input(each.label, value=each.value, placeholder=each.hint)
            for each in fields
        ]
        for field in drawn:
            field.classes("full-width")

        def check() -> None:
            found = []
            for field, each in zip(drawn, fields, strict=True):
                try:
                    found.append(each.read(str(field.value or "").strip()))
                    mark(field, "")
                except ValueError as error:
                    mark(field, str(error))
            if len(found) == len(fields):
                dialog.submit(found)

        with ui.element("div").classes("row").style("gap: .6rem"):
            ui.button(action, on_click=check).props("no-caps")
            ui.button(leave, on_click=dialog.close).props("outline no-caps")
    try:
        return await dialog  # type: ignore[no-any-return]
    finally:
        dialog.delete()


async def confirmed(title: str, text: str, action: str, leave: str = "Cancel") -> bool:
    """Ask for a confirmation of what `text` says; returns whether it was given."""
    return await answers(title, action, text=text, leave=leave) is not None


def complain(visit: Visit, text: str) -> None:
    """Show an error until the reader closes it."""
    ui.notify(visit.sentence(text), type="negative", multi_line=True, timeout=0, close_button="Close")


@contextmanager
def complaining(visit: Visit, prefix: str = "") -> Iterator[None]:
    """Show an error of what is done within, after a prefix."""
    try:
        yield
    except RampError as error:
        complain(visit, f"{prefix}{error}")


def mark(field: ValidationElement[Any], problem: str) -> None:
    """Show a problem at its field, also to screen readers; an empty one clears it."""
    field.error = problem or None
    field.props(f"aria-invalid={'true' if problem else 'false'}")  # updates only what changes
