"""Templates of requests: files of options for `ramp rfq new`, read as the options themselves are."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

import click

from ramp.errors import ConfigurationError
from ramp.options import nearest_name
from ramp.shipped_files import shipped_directory

_NOT_TERMS: Final = {"template", "earlier", "output", "help"}
"""Parameters of the command that are no terms of a request."""


def shipped_templates() -> dict[str, Path]:
    """Return the templates that come with RAMP, by name."""
    return {entry.stem: entry for entry in sorted(shipped_directory("agents_config/requests").glob("*.toml"))}


def take_template(ctx: click.Context, _: click.Parameter, given: str | None) -> None:
    """Take default options from a template; the callback of an eager option."""
    if given is None or ctx.resilient_parsing:
        return
    shipped = shipped_templates()
    path = Path(given) if Path(given).is_file() else shipped.get(given)
    if path is None:
        raise ConfigurationError(f"not found: expected a file or a template of RAMP: {', '.join(shipped)}", path=given)
    try:
        terms = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot be read: {error}", path=path) from error
    ctx.default_map = {**(ctx.default_map or {}), **_checked(ctx.command, terms, path)}


def _checked(command: click.Command, terms: dict[str, Any], path: Path) -> dict[str, Any]:
    """Convert the terms of a template as the command line would."""
    names = {
        option.removeprefix("--"): parameter
        for parameter in command.params
        if parameter.name not in _NOT_TERMS
        for option in parameter.opts
    }
    found: dict[str, Any] = {}
    for key, value in terms.items():
        parameter = names.get(key)
        if parameter is None or parameter.name is None:
            raise ConfigurationError(f"unknown option{nearest_name(key, list(names))}", path=path, key=key)
        is_flag = isinstance(parameter, click.Option) and parameter.is_flag
        if isinstance(value, bool) is not is_flag or not isinstance(value, str | int):
            right = "true or false" if is_flag else "a text or a whole number"
            raise ConfigurationError(f"got {value!r}, expected {right}", path=path, key=key)
        text = value if is_flag else str(value)
        found[parameter.name] = str(value).split() if getattr(parameter, "multiple", False) else text
    return found
