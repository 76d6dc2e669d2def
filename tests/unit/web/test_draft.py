"""The form of a request against the schema it is made from, and against `ramp rfq`."""

import contextlib
from zoneinfo import ZoneInfo

import pytest
from lxml import etree

from ramp.errors import ConfigurationError, DocumentError
from ramp.model.instant import HOUR, MINUTE, from_iso
from ramp.model.money import parse_credits
from ramp.protocol.events import Approval
from ramp.rfql.request_for_quotation import load_request, parse_request
from ramp.rfql.xml import schema
from ramp.rfql.xml.namespaces import schemas_dir
from ramp.runtime.state_folder import StateFolder
from ramp.shipped_files import shipped_directory
from ramp.web.draft import DRAFTS_MAX, FIELDS, FIRST, GROUPS, Draft, UnitDraft, greatest_cost, labelled
from ramp.web.site import Site
from tests.hostile import NUMBERS, TEXTS, TIMES

NOW = from_iso("2026-11-21T08:00:00Z")


def test_the_form_has_every_term_of_the_schema():
    elements = etree.parse(schemas_dir() / "rfql.xsd").iterfind("{*}element[@name='Request']//{*}element[@type]")
    hints = {name: each.hint for name, each in FIELDS.items()} | {"operating_system": "LINUX", "architecture": "x86_64"}
    shared = f"price wall_time end {GROUPS['Machine']}".split()
    units = [
        UnitDraft({name: hints[name] for name in (*shared, *own.split())} | {"start": "+5min"})
        for own in ("cores disk_gb", "nodes node_cores node_disk_gb")
    ]
    written = {etree.QName(each).localname for each in etree.fromstring(Draft(units).text(NOW).encode()).iter()}
    assert {str(each.get("name")) for each in elements} <= written
    for each in FIELDS.values():
        assert not isinstance(each.choices, str) or not each.choices or schema.choices_of(each.choices)
    assert "x86_64" in schema.choices_of("ArchitectureName")


def test_the_first_form_is_a_request():
    (unit,) = Draft().document(NOW).units
    assert (unit.cores.total, unit.cpu_hour_cost, unit.wall_time) == (64, 70, HOUR)
    assert (unit.not_before, unit.deadline) == (NOW + 10 * MINUTE, NOW + 12 * HOUR)


@pytest.mark.parametrize(
    "path", sorted((shipped_directory("schemas") / "examples" / "valid").glob("rfq-*.xml")), ids=lambda p: p.stem
)
def test_documents_come_back_as_they_were(path):
    document = load_request(path)
    again = Draft.of(document).document(from_iso("2010-01-01"))  # their windows are over by NOW
    assert again == document


def most(draft, approval=Approval.AUTO):
    return greatest_cost(draft.document(NOW), approval, NOW)


def test_most_it_costs():
    draft = Draft()
    assert most(draft) == 64 * 70 * 100  # one hour, hundredths of a credit
    draft.units.append(UnitDraft({"nodes": "4", "node_cores": "8", "price": "10", "wall_time": "30min"}))
    assert most(draft) == 64 * 70 * 100 + 32 * 10 * 50
    assert most(draft, Approval.BEST_OFFER) is None, "best offers may cost more"
    draft.max_cost = "99.50"
    assert most(draft) == most(draft, Approval.BEST_OFFER) == parse_credits("99.50")


def test_the_most_of_a_moldable_unit_is_that_of_its_reference_size():
    unit = UnitDraft(
        {"cores": "8..512", "reference_cores": "64", "speed_up": "amdahl:0", "price": "70", "wall_time": "1h"}
    )
    assert most(Draft([unit])) == 64 * 70 * 100


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"price": "3.5"}, "Maximum price (credits/core-hour): expected a whole number of at least 1, got 3.5"),
        ({"price": ""}, "missing, for example 70"),
        ({"start": "soon"}, "invalid time: got 'soon', expected"),
        ({"wall_time": "an hour"}, "invalid duration: got 'an hour', expected"),
        ({"cores": "", "nodes": "8"}, "invalid number of cores"),
        ({"end": "", "wall_time": ""}, "no length of the run"),
        ({"geometry": "8*8"}, "expected extents such as 8x8x16"),
        ({"end": "+5min"}, "must be after the start"),
        ({"start_probability": "often"}, "expected a number such as 0.95, got often"),
        ({"start_probability": "95"}, "95"),
        ({"disk_gb": "1", "node_disk_gb": "1"}, "Total disk space (GB)"),
    ],
)
def test_what_makes_no_sense_is_said_in_the_command_lines_words(texts, said):
    draft = Draft()
    draft.units[0].texts |= texts
    with pytest.raises((ConfigurationError, DocumentError)) as caught:
        draft.document(NOW)
    assert said in str(caught.value)


def test_a_limit_that_is_no_amount_is_named():
    with pytest.raises(ConfigurationError, match="maximum total cost: "):
        Draft(max_cost="a lot").document(NOW)


def test_a_document_of_many_units_is_left_to_the_command_line():
    one = Draft().text(NOW)
    unit = one[one.index("<Request>") : one.index("</Request>") + 10]
    with pytest.raises(ConfigurationError, match="limited to 32 units, got 33"):
        Draft.of(parse_request(one.replace(unit, unit * 33)))


def test_keywords_are_labels():
    assert labelled("geometry='x' is no extents") == "Shape on a torus: 'x' is no extents"


@pytest.mark.parametrize("name", [*FIELDS, "max_cost"])
def test_no_text_in_a_field_is_a_fault_of_the_program(name):
    for text in (*TIMES, *NUMBERS, *TEXTS, "0", "70.5", "\x00", "\ud800", "yesterday", "8x", "<a>", "]]>"):
        unit = UnitDraft({**FIRST, name: text} if name in FIELDS else dict(FIRST))
        draft = Draft([unit], max_cost=text if name == "max_cost" else "")
        with contextlib.suppress(ConfigurationError, DocumentError):
            draft.document(NOW)


def test_a_time_in_a_field_is_in_the_zone_of_the_browser():
    unit = UnitDraft({**FIRST, "start": "tomorrow 18:00", "end": ""})
    assert unit.at(NOW, ZoneInfo("America/New_York")).units[0].not_before == from_iso("2026-11-22T23:00:00Z")


def test_a_session_finds_its_form_again_and_the_oldest_is_forgotten(tmp_path):
    draft_of = Site(StateFolder(tmp_path), None).draft_of
    for number in range(DRAFTS_MAX + 1):
        draft_of(f"session {number}").max_cost = str(number)
    assert draft_of(f"session {DRAFTS_MAX}").max_cost == str(DRAFTS_MAX)
    assert draft_of("session 0").max_cost == ""
