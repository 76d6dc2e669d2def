"""Questions before something is done, and errors at the field that they are about."""

from __future__ import annotations

from typing import Any

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement

from ramp.web.pages import frame


async def confirmed(title: str, text: str, action: str, leave: str = "Cancel") -> bool:
    """Ask for a confirmation; returns whether it was given.

    Args:
        title: of the dialog, a question.
        text: what will happen.
        action: the button that confirms.
        leave: the button that changes nothing.
    """
    with ui.dialog() as dialog, ui.card().classes("ramp-card"):
        frame.subheading(title)
        ui.label(text)
        with ui.element("div").classes("row").style("gap: .6rem"):
            ui.button(action, on_click=lambda: dialog.submit(result=True)).props("no-caps")
            ui.button(leave, on_click=lambda: dialog.submit(result=False)).props("outline no-caps")
    try:
        return bool(await dialog)
    finally:
        dialog.delete()


def mark(field: ValidationElement[Any], problem: str) -> None:
    """Show a problem at its field, also to screen readers; an empty one clears it."""
    if (field.error or "") != problem:
        field.error = problem or None
        field.props["aria-invalid"] = "true" if problem else "false"
        field.update()
