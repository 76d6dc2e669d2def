"""Options from files, command lines and callers, read into frozen dataclasses: one reader for all of them.

The dataclass says everything: names, types, defaults, and in `Annotated` what a value must satisfy. Nothing is
converted on the way: a text is no number and `true` is no 1. All findings are told at once, each with its path, in a
file with its line, and with the nearest right name.
"""

from __future__ import annotations

import difflib
import enum
import functools
import inspect
import math
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from ramp.errors import ConfigurationError, RampError

_Options = TypeVar("_Options")
_Called = TypeVar("_Called", bound=Callable[..., Any])
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Given = ParamSpec("_Given")
_Read = TypeVar("_Read")
_TAKEN: Final[dict[Callable[..., Any], type]] = {}
_Path = tuple[str | int, ...]
_HEADER: Final = re.compile(r"\s*(\[\[?)([^\[\]]+)\]")
_KEY: Final = re.compile(r"\s*([\w.\"'-]+)\s*=")
_VALUE_SHOWN_MAX: Final = 60
_SCALARS: Final[dict[Any, tuple[str, tuple[type, ...]]]] = {
    bool: ("true or false", (bool,)),
    int: ("a whole number", (int,)),
    float: ("a number", (int, float)),
    Fraction: ("a number", (int, float)),
    str: ("a text", (str,)),
    Path: ("a path", (Path,)),
    Decimal: ("a Decimal", (Decimal,)),
    datetime: ("a datetime", (datetime,)),
    timedelta: ("a timedelta", (timedelta,)),
}
"""What a value of each type is called, and the types in which it may arrive."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """A number's least and largest value, both allowed; None where there is no largest."""

    least: float
    most: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a number is within."""
        return self.least <= value and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        return f"from {_plain(self.least)}" + ("" if self.most is None else f" to {_plain(self.most)}")


def _plain(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:g}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A condition on a value; to be a module's constant, as functions in annotations do not see their module.

    Attributes:
        words: what is wanted, for messages.
        holds: whether a value is right.
    """

    words: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Written:
    """How a file writes a value that a field holds in another form; to be a module's constant, as `Wanted`.

    Attributes:
        words: what is wanted, for messages.
        read: returns the value of what was written; raises `ValueError` for anything else.
        show: returns the text of a value.
        suffix: end of the key in the file, behind the name of the field.
    """

    words: str
    read: Callable[[Any], Any]
    show: Callable[[Any], str] = str
    suffix: str = ""


def written_seconds(least: float = 0) -> Written:
    """The form of a duration in microseconds: seconds, in a key that ends with `_s`; by default any number above 0."""

    def read(value: float) -> int:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not least <= value < math.inf or value == 0:
            raise ValueError("no such duration")
        return round(value * 1_000_000)

    words = f"a number of seconds {f'from {least:g}' if least else 'above 0'}"
    return Written(words, read, lambda duration: f"{duration / 1_000_000:g}", "_s")


Seconds = Annotated[int, written_seconds()]
"""A duration in microseconds, of a file's key that ends with `_s`."""

_ATTRIBUTE: Final = re.compile(r"^(?P<indent> {4,8})(?P<name>\w+): (?P<words>.+(?:\n(?P=indent) +\S.*)*)", re.MULTILINE)
"""One attribute in a docstring; the lines that go on with it stand further in."""


def first_paragraph(about: object) -> str:
    """The first paragraph of a docstring as one line; empty where there is none."""
    return " ".join((inspect.getdoc(about) or "").partition("\n\n")[0].split())


def nearest_name(word: str, known: Sequence[str]) -> str:
    """The end of an error message about an unknown name: which one was meant, or which there are."""
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f": expected one of {', '.join(known)}" if known else ""


def read_options(
    values: Mapping[str, Any],
    into: type[_Options],
    *,
    source: str | None = None,
    within: str = "",
    text: str = "",
) -> _Options:
    """Read a table into a dataclass, of which fields with defaults may be absent.

    Errors name the file `source`, what the table is `within` (`thunder1`), and the lines of the file's `text`.

    Raises:
        ConfigurationError: with every finding.
    """
    read, findings = options_and_findings(values, into)
    if read is None:
        raise wrong_options(findings, source=source, within=within, text=text)
    return read


def options_and_findings(
    values: Mapping[str, Any], into: type[_Options]
) -> tuple[_Options | None, list[tuple[_Path, str]]]:
    """Read a table into a dataclass as `read_options` does; return None and the findings if there are any."""
    reader = _Reader()
    read: _Options | None = reader.table(values, into, ())
    return read, reader.findings


def wrong_options(
    findings: Iterable[tuple[_Path, str]], *, source: str | None, within: str = "", text: str = ""
) -> ConfigurationError:
    """The error that tells of findings: path into the table, and what is wrong there; see `read_options`."""
    told = [(line_of(text, path), ".".join(filter(None, (within, _dotted(path)))), words) for path, words in findings]
    if len(told) == 1:
        ((line, key, words),) = told
        return ConfigurationError(words, path=source if line is None else f"{source}:{line}", key=key or None)
    lines = [(f"line {line}: " if line is not None else "") + f"{key}: {words}" for line, key, words in told]
    return ConfigurationError("\n  ".join((f"{len(told)} errors", *lines)), path=source)


def line_of(text: str, path: _Path) -> int | None:
    """The line of a TOML text where a key stands, or else the nearest thing around it; None where nothing is."""
    best, depth = None, 0
    here: _Path = ()
    counts: dict[_Path, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            here = ()
            names = _names(header[2])
            for index, name in enumerate(names):
                here = (*here, name)
                if header[1] == "[[" and index == len(names) - 1:
                    counts[here] = counts.get(here, -1) + 1
                if here in counts:
                    here = (*here, counts[here])
            found = here
        elif key := _KEY.match(line):
            found = (*here, *_names(key[1]))
        else:
            continue
        if len(found) > depth and path[: len(found)] == found:
            best, depth = number, len(found)
    return best


def path_of(key: str) -> _Path:
    """A key as messages write it (`failed_links[0].node`), as a path."""
    return tuple(int(index) if index else name for name, index in re.findall(r"([^.\[\]]+)(?=[.\[]|$)|\[(\d+)\]", key))


def value_of_text(text: str) -> Any:
    """The value that stands behind `NAME=` on a command line: as in TOML, and any other word is a text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def checked(called: _Called) -> _Called:
    """Make a function, or every public method of a class, refuse arguments that its annotations do not allow."""
    if isinstance(called, type):
        for name, method in vars(called).items():
            if not name.startswith("_") and inspect.isfunction(method):
                setattr(called, name, checked(method))
        return called
    signature = inspect.signature(called)

    @functools.wraps(called)
    def checking(*args: Any, **given: Any) -> Any:
        bound = signature.bind(*args, **given)
        hints = _hints_of(called)
        reader = _Reader()
        for name, value in bound.arguments.items():
            kind, parameter = hints.get(name, Any), signature.parameters[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                bound.arguments[name] = tuple(reader.read(each, kind, (name, at)) for at, each in enumerate(value))
            elif parameter.kind is not parameter.VAR_KEYWORD and name != "self":
                bound.arguments[name] = reader.read(value, kind, (name,))
        if reader.findings:
            raise wrong_options(reader.findings, source=None)
        return called(*bound.args, **bound.kwargs)

    return checking  # type: ignore[return-value]  # `wraps` keeps what it looks like


def read_argument(name: str, read: Callable[_Given, _Read], /, *given: _Given.args, **how: _Given.kwargs) -> _Read:
    """Read an argument by a function, whose `ValueError` becomes a `ConfigurationError` that names the argument."""
    try:
        return read(*given, **how)
    except ValueError as error:
        raise ConfigurationError(str(error), key=name) from error


@functools.cache
def _hints_of(called: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(called, include_extras=True)


def takes(options: type) -> Callable[[_Function], _Function]:
    """Say of a function which dataclass its options are, so that they can be listed (`options_of`)."""

    def mark(function: _Function) -> _Function:
        _TAKEN[function] = options
        return function

    return mark


def options_of(function: Callable[..., Any]) -> type | None:
    """The dataclass that a function marked by `takes` reads; None of any other."""
    return _TAKEN.get(function)


def described_options(options: type | None) -> list[dict[str, str]]:
    """The options of a dataclass for people: name, type, default, and the words of its docstring."""
    if options is None:
        return []
    hints = get_type_hints(options, include_extras=True)
    docstrings = "\n".join(each.__doc__ or "" for each in reversed(options.__mro__[:-1]))
    told = {found["name"]: " ".join(found["words"].split()) for found in _ATTRIBUTE.finditer(docstrings)}
    return [
        {
            "name": _key_of(one, hints),
            "type": _type_words(hints[one.name]),
            "default": _default_words(one, _written(hints[one.name])),
            "about": told.get(one.name, ""),
        }
        for one in fields(options)
    ]


def _names(dotted: str) -> tuple[str, ...]:
    return tuple(name.strip().strip("\"'") for name in dotted.split("."))


def _dotted(path: _Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _written(kind: Any) -> Written | None:
    """The form of a field's values in a file, if it is another one."""
    kinds = get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)
    conditions = (condition for each in kinds if get_origin(each) is Annotated for condition in get_args(each)[1:])
    return next((each for each in conditions if isinstance(each, Written)), None)


def _key_of(one: Field[Any], hints: Mapping[str, Any]) -> str:
    written = _written(hints[one.name])
    return one.name if written is None else one.name + written.suffix


def _default_words(one: Field[Any], written: Written | None) -> str:
    if one.default is MISSING:
        return "required" if one.default_factory is MISSING else ""
    if one.default is None:
        return ""
    return str(one.default) if written is None else written.show(one.default)


def _type_words(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        inner, *conditions = get_args(kind)
        words = [each.words for each in conditions if isinstance(each, Wanted | Written)]
        return " and ".join(words) or " ".join([_type_words(inner), *map(str, conditions)])
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return " | ".join(str(each.value) for each in kind)
    if get_origin(kind) is Literal:
        return " | ".join(map(str, get_args(kind)))
    if get_origin(kind) is Callable:
        return "function"
    if get_origin(kind) in {Union, UnionType}:
        return " | ".join(_type_words(each) for each in get_args(kind) if each is not type(None))
    if kind in _SCALARS:
        return _SCALARS[kind][0].removeprefix("a ")
    return "list" if get_origin(kind) in {tuple, list, Sequence} else "table"


class _Reader:
    """Reads values of the types that options have; collects findings instead of stopping at the first."""

    def __init__(self) -> None:
        self.findings: list[tuple[_Path, str]] = []

    def read(self, value: Any, kind: Any, path: _Path) -> Any:
        """The value as a field of that type holds it; None after a finding."""
        if get_origin(kind) is Annotated:
            return self._conditional(value, kind, path)
        if get_origin(kind) in {Union, UnionType}:
            return self._one_of(value, [each for each in get_args(kind) if each is not type(None)], kind, path)
        if get_origin(kind) in {tuple, list, Sequence}:
            inner = get_args(kind)
            fixed = get_origin(kind) is tuple and inner[-1] is not ...
            if not isinstance(value, list | tuple) or (fixed and len(value) != len(inner)):
                return self._wrong(path, value, f"a list of {len(inner)}" if fixed else "a list")
            kinds = inner if fixed else (inner[0],) * len(value)
            read = [self.read(each, one, (*path, at)) for at, (each, one) in enumerate(zip(value, kinds, strict=True))]
            return read if get_origin(kind) is list else tuple(read)
        if get_origin(kind) is Literal:
            known = list(get_args(kind))
            return value if value in known else self._wrong(path, value, f"one of {', '.join(map(str, known))}")
        if get_origin(kind) is Callable:
            return value if callable(value) else self._wrong(path, value, "a function")
        if get_origin(kind) in {dict, Mapping} or is_dataclass(kind):
            if isinstance(kind, type) and isinstance(value, kind) and is_dataclass(kind):
                return value
            if not isinstance(value, Mapping):
                return self._wrong(path, value, "a table")
            if is_dataclass(kind):
                return self.table(value, kind, path)
            inner = get_args(kind)[1]
            return {name: self.read(each, inner, (*path, str(name))) for name, each in value.items()}
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            known = [each.value for each in kind]
            return kind(value) if value in known else self._wrong(path, value, f"one of {', '.join(known)}")
        return self._scalar(value, kind, path)

    def table(self, values: Mapping[str, Any], into: Any, path: _Path) -> Any:
        try:
            hints = get_type_hints(into, include_extras=True)
        except Exception as error:  # a guest's class, whose annotations name what is not there
            self.findings.append((path, f"{into.__name__} cannot be read: {type(error).__name__}: {error}"))
            return None
        known = {_key_of(one, hints): one for one in fields(into) if one.init}
        before = len(self.findings)
        for name in values:
            if name not in known:
                near = nearest_name(str(name), sorted(known)) or "; no options exist here"
                self.findings.append(((*path, name), f"unknown{near}"))
        read = {}
        for name, one in known.items():
            if name in values:
                read[one.name] = self.read(values[name], hints[one.name], (*path, name))
            elif one.default is MISSING and one.default_factory is MISSING:
                wanted = [f"; expected {each.words}" for each in get_args(hints[one.name]) if isinstance(each, Wanted)]
                self.findings.append(((*path, name), f"is missing{''.join(wanted)}"))
        if len(self.findings) > before:
            return None
        try:
            return into(**read)
        except ConfigurationError as error:
            self.findings.append(((*path, *path_of(error.key or "")), error.reason))
        except (RampError, ValueError) as error:
            self.findings.append((path, str(error)))
        return None

    def _one_of(self, value: Any, kinds: Sequence[Any], kind: Any, path: _Path) -> Any:
        if value is None and type(None) in get_args(kind):
            return None
        tried = []
        for one in kinds:
            reader = _Reader()
            read = reader.read(value, one, path)
            if not reader.findings:
                return read
            tried.append(reader.findings)
        if len(kinds) == 1:
            self.findings += tried[0]
            return None
        words = [one.__name__ if isinstance(one, type) and is_dataclass(one) else _type_words(one) for one in kinds]
        return self._wrong(path, value, " or ".join(words).replace(" | ", " or "))

    def _conditional(self, value: Any, kind: Any, path: _Path) -> Any:
        inner, *conditions = get_args(kind)
        if (written := _written(kind)) is not None:
            try:
                return written.read(value)
            except ValueError:
                return self._wrong(path, value, written.words)
        before = len(self.findings)
        found = self.read(value, inner, path)
        if len(self.findings) == before and found is not None:
            for each in conditions:
                if not each.holds(found):
                    words = each.words if isinstance(each, Wanted) else f"{_SCALARS[type(found)][0]} {each}"
                    return self._wrong(path, value, words)
        return found

    def _scalar(self, value: Any, kind: Any, path: _Path) -> Any:
        if kind is Any:
            return value
        if kind not in _SCALARS and isinstance(value, get_origin(kind) or kind):
            return value
        if kind not in _SCALARS:
            self.findings.append(
                (path, f"unsupported type of an option in its declaration: got {getattr(kind, '__name__', kind)}")
            )
            return None
        wanted, accepted = _SCALARS[kind]
        # a truth value is an int to Python, but not to people who write 'processors = true'
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            return self._wrong(path, value, wanted)
        if isinstance(value, int | float) and kind in {float, Fraction} and not abs(value) <= sys.float_info.max:
            return self._wrong(path, value, f"{wanted} that is finite")
        if isinstance(value, str | Path) and not _is_storable(str(value)):
            return self._wrong(path, value, f"{wanted} of characters that UTF-8 has, without U+0000")
        return Fraction(str(value)) if kind is Fraction else kind(value) if kind in {int, float} else value

    def _wrong(self, path: _Path, value: Any, wanted: str) -> None:
        try:
            shown = str(value).lower() if isinstance(value, bool) else repr(value)
        except Exception:  # a number of thousands of digits, or an object of the caller
            shown = f"an unprintable {type(value).__name__}"
        shown = shown if len(shown) <= _VALUE_SHOWN_MAX else f"{shown[:_VALUE_SHOWN_MAX]}..."
        self.findings.append((path, f"got {shown}, expected {wanted}"))


def _is_storable(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False
