"""Check documents against a schema, with plain messages: line, element, value and expected value."""

from __future__ import annotations

import difflib
import re
from functools import cache
from typing import Any, Final

from lxml import etree

from ramp.errors import DocumentError
from ramp.rfql.xml.markup import VALUE_SHOWN_MAX, shown
from ramp.rfql.xml.namespaces import schemas_dir
from ramp.rfql.xml.parser import Element

_NAMESPACE: Final = re.compile(r"\{(?:http|urn)[^{}']*\}")
_XS: Final = "{http://www.w3.org/2001/XMLSchema}"
_FACET: Final = re.compile(r"\[facet '\w+'\] ")
_NAMED: Final = re.compile(
    r"Element '(?P<element>[^']*)'(?:, attribute '(?P<attribute>[^']*)')?: (?P<rest>.*)", re.DOTALL
)
_ENUMERATED: Final = re.compile(r"The value '(?P<value>.*)' is not an element of the set \{(?P<names>.*)\}", re.DOTALL)
_ATOMIC: Final = re.compile(
    r"'(?P<value>.*)' is not a valid value of the (?:atomic|local atomic|union) type", re.DOTALL
)
_PATTERN: Final = re.compile(r"The value '(?P<value>.*)' is not accepted by the pattern '(?P<pattern>.*)'", re.DOTALL)
_LEAST: Final = re.compile(r"The value '(?P<value>.*)' is less than the minimum value allowed \('(?P<least>.*)'\)")
_NOT_EXPECTED: Final = re.compile(r"This element is not expected\.(?: Expected is (?:one of )?\( (?P<names>.*) \))?")
_MISSING: Final = re.compile(r"Missing child element\(s\)\.(?: Expected is (?:one of )?\( (?P<names>.*) \))?")

_RIGHT_OF_TYPE: Final = {
    "integer": "a whole number",
    "long": "a whole number",
    "date": "a date such as 2026-11-21",
    "time": "a time such as 08:30:00",
    "boolean": "true or false",
    "Instant": "a time in UTC such as 2026-11-21T08:30:00Z",
    "Duration": "seconds such as PT30S",
    "Share": "a number from 0",
    "Price": "a whole number from 0",
    "Count": "a whole number from 1",
    "MinorUnits": "a whole number",
    "Cost": "a whole number from 0",
    "Amount": "a whole number from 1",
    "Ordinal": "a whole number from 0",
    "Extents": "extents such as 8x8x16, or any",
    "Credits": "an amount of credits such as 5000 or 99.50",
    "Identifier": "1 to 64 letters, digits, dots, underscores, plus signs and hyphens, such as offer-17; a name may "
    "end with @ and a domain",
    "LocalAccount": "a local account such as alice1",
    "NumberedId": "an identifier such as payment:agreement-17",
    "Reference": "an identifier, or nothing",
    "Sentence": "one line of printable characters",
    "ReasonCode": "a word such as insufficient_funds",
    "Proof": "64 hexadecimal digits",
    "Pem": "a certificate or a revocation list in PEM",
    "SigningRequest": "a request for a certificate in base64, on one line",
    "Digest": "a digest: 43 letters, digits, hyphens and underscores",
    "Base64": "data in base64",
    "FilePath": "a relative path such as results/out.txt",
    "Sha256": "64 hexadecimal digits",
    "Site": "a domain in lower case such as grid.example",
    "TermName": "1 to 64 letters, digits, dots, underscores, plus signs and hyphens, such as a100",
    "SpeedUpLaw": "a law of speed-up such as amdahl:0.05",
    "Words": "one line of printable characters",
}

_COMMON_NAMES: Final = {
    **dict.fromkeys(("amd64", "x64", "x86-64", "em64t", "intel64", "intel"), "x86_64"),
    **dict.fromkeys(("i386", "i586", "i686", "ia32"), "x86_32"),
    **dict.fromkeys(("ppc", "ppc64", "ppc64le", "power"), "powerpc"),
    **dict.fromkeys(("aarch64", "arm64"), "arm"),
    **dict.fromkeys(("cuda", "nvidia"), "gpu"),
}
"""Common names of JSDL's architectures whose spelling suggests another one."""


@cache
def schema(name: str = "market") -> etree.XMLSchema:
    """Return the compiled schema of that name (`market` holds all of them); compiled once per process."""
    return etree.XMLSchema(etree.parse(schemas_dir() / f"{name}.xsd"))


def check(root: Element, source: str | None = None) -> None:
    """Check a document of the market, by its root element; `source` is its name in the message.

    Raises:
        DocumentError: with all findings, each naming line, element, value and expected value.
    """
    if violations := findings(root):
        raise violation(violations, source)


def violation(violations: tuple[str, ...], source: str | None) -> DocumentError:
    """Return one error for all findings; a single one takes one line."""
    if len(violations) == 1:
        return DocumentError(violations[0], source=source)
    return DocumentError(f"{len(violations)} errors", source=source, violations=violations)


def findings(root: Element, name: str = "market") -> tuple[str, ...]:
    """Return all findings of the schema check in plain words; empty for a valid document."""
    compiled = schema(name)
    return () if compiled.validate(root) else violations_of(compiled)


def violations_of(compiled: etree.XMLSchema) -> tuple[str, ...]:
    """Return the last check's findings in plain words, in document order, each element and attribute once.

    Some versions of libxml2 report a broken facet and then the same value again as "not valid for the type".
    """
    told: dict[tuple[int, str], str] = {}
    log: Any = compiled.error_log
    for entry in log:
        match = _NAMED.match(_NAMESPACE.sub("", entry.message))
        if match is None:
            told.setdefault((entry.line, entry.message), f"line {entry.line}: {entry.message}")
            continue
        where = match["element"] + (f" attribute {match['attribute']}" if match["attribute"] else "")
        told.setdefault((entry.line, where), f"line {entry.line}: {where}: {_plain(match['rest'])}")
    return tuple(told.values())


def _plain(rest: str) -> str:
    body = _FACET.sub("", rest, count=1)
    if match := _ENUMERATED.match(body):
        names = tuple(name.strip(" '") for name in match["names"].split(","))
        return f"got {shown(match['value'])}, {nearest_name(match['value'], names)}"
    if match := _NOT_EXPECTED.match(body):
        if not match["names"]:
            return "not allowed here; give one of the alternatives only, each element once and in order"
        return f"not allowed here, expected {_alternatives(match['names'])}"
    if match := _MISSING.match(body):
        return "a child element is missing" + (f"; expected {_alternatives(match['names'])}" if match["names"] else "")
    if match := _ATOMIC.match(body):
        kind = body[match.end() :].strip(" '.").removeprefix("xs:")
        return f"got {shown(match['value'])}, expected {_RIGHT_OF_TYPE.get(kind, kind)}"
    if match := _PATTERN.match(body):
        kind = _types_by_pattern().get(match["pattern"], "")
        return f"got {shown(match['value'])}, expected {_RIGHT_OF_TYPE.get(kind, match['pattern'])}"
    if match := _LEAST.match(body):
        return f"got {shown(match['value'])}, expected a number from {match['least']}"
    return body if len(body) <= 4 * VALUE_SHOWN_MAX else f"{body[: 4 * VALUE_SHOWN_MAX]}..."


@cache
def _types_by_pattern() -> dict[str, str]:
    """Return the schemas' types by their patterns: libxml2 quotes the pattern, not the type."""
    types = (
        kind
        for path in schemas_dir().glob("*.xsd")
        for kind in etree.parse(path).iterfind(f".//{_XS}simpleType[@name]")
    )
    return {str(each.get("value")): str(kind.get("name")) for kind in types for each in kind.iter(f"{_XS}pattern")}


@cache
def choices_of(name: str) -> tuple[str, ...]:
    """Return the values of an enumeration in the schema of requests, such as `ArchitectureName`."""
    values = f"{_XS}simpleType[@name='{name}']//{_XS}enumeration"
    return tuple(str(each.get("value")) for each in etree.parse(schemas_dir() / "rfql.xsd").iterfind(values))


def _alternatives(names: str) -> str:
    # "##other{...}*" is libxml2's name for the extension point; users see the published terms only.
    listed = [name.strip() for name in names.split(",") if not name.strip().startswith("##")]
    return " or ".join(listed) if listed else "the end of the parent element, or extension elements"


def nearest_name(value: str, names: tuple[str, ...]) -> str:
    """Describe the expected value instead of `value`: the nearest allowed name, or all of them if none is near."""
    meant = _COMMON_NAMES.get(value.strip().casefold())
    if meant in names:
        return f"expected {meant!r}"
    by_folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(value.strip().casefold(), list(by_folded), n=1, cutoff=0.6)
    if close:
        return f"expected {by_folded[close[0]]!r}"
    return f"expected one of {', '.join(names)}"
