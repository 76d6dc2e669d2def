"""The documents of `schemas/examples`: the valid ones are read, each invalid one is refused for its own reason."""

import re
from pathlib import Path

import pytest
from lxml import etree

from ramp.errors import DocumentError
from ramp.model import contents
from ramp.model.acl import CONTENT_OF
from ramp.model.instant import from_iso
from ramp.model.request import RequestForQuotation
from ramp.rfql import documents, request_for_quotation
from ramp.rfql.signing.notary import PublicNotary
from ramp.rfql.signing.trust import Trust
from ramp.rfql.xml import schema
from ramp.rfql.xml.namespaces import schemas_dir
from ramp.runtime.keys.store import load_ca_certificates

EXAMPLES = Path(__file__).resolve().parents[3] / "schemas" / "examples"
VALID = sorted((EXAMPLES / "valid").glob("*.xml"))
INVALID = sorted((EXAMPLES / "invalid").glob("*.xml"))
RULE = re.compile(r"<!-- rule: (?P<rule>[^|]+) \| names: (?P<names>.*) -->")
SIGNED_AT = from_iso("2026-11-21T08:00:00Z")


def read(path: Path) -> RequestForQuotation | contents.Content:
    """Read an example as the market would: a request from a file, anything else from a message."""
    text = path.read_text("utf-8")
    if path.name.startswith("rfq-"):
        return request_for_quotation.load_request(path)
    notary = PublicNotary(Trust(load_ca_certificates(EXAMPLES / "market-ca.pem")))
    return documents.read_content(RULE.sub("", text).strip(), notary, SIGNED_AT, path.name)


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_valid_example_is_read(path: Path) -> None:
    assert not isinstance(read(path), contents.Unverified)


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_invalid_example_is_refused_for_its_own_reason(path: Path) -> None:
    match = RULE.search(path.read_text("utf-8"))
    assert match is not None, f"{path.name} does not name its rule"
    try:
        content = read(path)
    except DocumentError as error:
        message = str(error)
    else:
        assert isinstance(content, contents.Unverified), f"{path.name} was read: {match['rule']}"
        message = content.detail
    for name in match["names"].split(" | "):
        assert name in message


def test_every_content_has_an_example() -> None:
    seen = {type(read(path)) for path in VALID}
    sendable = {content for kinds in CONTENT_OF.values() for content in kinds} - {contents.Unverified}
    assert sendable - seen == set()


def test_every_schema_is_a_schema() -> None:
    for path in schemas_dir().glob("*.xsd"):
        etree.XMLSchema(etree.parse(path))


def test_every_pattern_of_a_schema_is_explained_in_words() -> None:
    assert set(schema._types_by_pattern().values()) <= schema._RIGHT_OF_TYPE.keys()
    site = etree.fromstring('<Sites xmlns="urn:ramp:sites:1">West.Example</Sites>')
    (finding,) = schema.findings(site, "sites")
    assert finding == "line 1: Sites: got 'West.Example', expected a domain in lower case such as grid.example"


def test_the_original_samples_seventeen_of_which_thirteen_end_before_they_start() -> None:
    """The fact sheet: Intel as architecture in all 17, prices 25 to 80, 5 to 20480 cores, 13 with the end first."""
    good = [path for path in VALID if path.name.startswith("rfq-original-")]
    bad = [path for path in INVALID if path.name.startswith("rfq-original-")]
    assert (len(good), len(bad)) == (4, 13)
    for path in good:
        rfq = request_for_quotation.load_request(path)
        assert rfq.units[0].architecture == "x86_64"
        assert any("Intel" in warning for warning in rfq.warnings)
    for path in bad:
        with pytest.raises(DocumentError, match="must be after the start") as caught:
            request_for_quotation.load_request(path)
        assert str(path) in str(caught.value)
        assert "Architecture" not in str(caught.value)
