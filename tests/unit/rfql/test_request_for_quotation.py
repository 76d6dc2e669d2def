"""RFQL documents: paper section 5.2's terms, meaning, messages, and all findings at once."""

from pathlib import Path

import pytest

from ramp.errors import DocumentError
from ramp.model.instant import HOUR, SECOND, from_iso, iso
from ramp.model.request import NodeDiskSpace, Nodes, RequestForQuotation, RequestUnit, TorusTerms, TotalCores
from ramp.rfql.request_for_quotation import load_request, parse_request, write_request

RFQ = "http://www.realitygrid.org/AHE/RFQ"


def document(*requests: str) -> str:
    inside = "\n".join(f"<Request>{request}</Request>" for request in requests)
    return f'<RequestForQuotation xmlns="{RFQ}">\n{inside}\n</RequestForQuotation>'


END = "<EndDate>2026-11-21</EndDate><EndTime>12:00:00</EndTime>"
START = "<StartDate>2026-11-21</StartDate><StartTime>09:00:00</StartTime>"
CORES = "<Cores><TotalCores>128</TotalCores></Cores>"


def test_all_terms_are_read() -> None:
    """Every one of the 17 terms, with the units that the project states."""
    text = document(
        f"<CPUHourCost>70</CPUHourCost>{END}{START}<OperatingSystem>LINUX</OperatingSystem><OSVersion>6.1</OSVersion>"
        "<Architecture>x86_64</Architecture><CPUSpeed>2400</CPUSpeed><WallTime>3600</WallTime>"
        "<InterNodeBandwidth>10000</InterNodeBandwidth><RAMPerCore>2048</RAMPerCore>"
        "<Disk><NodeDiskSpace>20</NodeDiskSpace></Disk>"
        "<Cores><Nodes><NodeCount>16</NodeCount><NodeCores>8</NodeCores></Nodes></Cores>"
    )
    assert parse_request(text) == RequestForQuotation(
        (
            RequestUnit(
                number=1,
                cpu_hour_cost=70,
                deadline=from_iso("2026-11-21T12:00:00Z"),
                cores=Nodes(16, 8),
                not_before=from_iso("2026-11-21T09:00:00Z"),
                wall_time=HOUR,
                operating_system="LINUX",
                os_version="6.1",
                architecture="x86_64",
                cpu_speed_mhz=2400,
                inter_node_bandwidth_mbps=10000,
                ram_per_core_mb=2048,
                disk=NodeDiskSpace(20),
            ),
        )
    )


def test_units_keep_document_order() -> None:
    rfq = parse_request(
        document(
            f"<CPUHourCost>70</CPUHourCost>{END}{CORES}",
            f"<CPUHourCost>40</CPUHourCost>{END}<Cores><TotalCores>16</TotalCores></Cores>",
        )
    )
    assert [(unit.number, unit.cpu_hour_cost, unit.cores.total) for unit in rfq.units] == [(1, 70, 128), (2, 40, 16)]


def test_without_start_the_request_means_as_soon_as_possible() -> None:
    assert parse_request(document(f"<CPUHourCost>70</CPUHourCost>{END}{CORES}")).units[0].not_before is None


def test_start_date_alone_is_its_midnight() -> None:
    start = "<StartDate>2026-11-21</StartDate>"
    unit = parse_request(document(f"<CPUHourCost>70</CPUHourCost>{END}{start}{CORES}")).units[0]
    assert unit.not_before == from_iso("2026-11-21T00:00:00Z")


@pytest.mark.parametrize(
    ("date", "time", "moment"),
    [
        ("2026-11-21", "12:00:00", "2026-11-21T12:00:00Z"),  # without a zone: UTC
        ("2026-11-21", "12:00:00Z", "2026-11-21T12:00:00Z"),
        ("2026-11-21", "12:00:00+03:00", "2026-11-21T09:00:00Z"),
        ("2026-11-21-05:00", "12:00:00", "2026-11-21T17:00:00Z"),
        ("2026-11-21+01:00", "12:00:00+01:00", "2026-11-21T11:00:00Z"),
        ("2026-11-21", "24:00:00", "2026-11-22T00:00:00Z"),
        ("2026-11-21", "12:00:00.25", "2026-11-21T12:00:00.250000Z"),
        (" 2026-11-21 ", "\n12:00:00\n", "2026-11-21T12:00:00Z"),
        ("2028-02-29", "00:00:00", "2028-02-29T00:00:00Z"),
    ],
)
def test_moments(date: str, time: str, moment: str) -> None:
    text = document(f"<CPUHourCost>70</CPUHourCost><EndDate>{date}</EndDate><EndTime>{time}</EndTime>{CORES}")
    assert parse_request(text).units[0].deadline == from_iso(moment)


@pytest.mark.parametrize(
    ("date", "time", "reason"),
    [
        ("10000-01-01", "00:00:00", "invalid date: got '10000-01-01'"),
        ("9999-12-31", "24:00:00", "expected 1970 to 9000"),
        ("9000-01-01", "00:00:00", "expected 1970 to 9000"),
        ("1969-12-31", "23:59:59", "expected 1970 to 9000"),
        ("2026-11-21", "24:00:01", "24:00:01"),
        ("2026-11-21Z", "12:00:00+01:00", "differ"),
    ],
)
def test_moments_that_are_none(date: str, time: str, reason: str) -> None:
    text = document(f"<CPUHourCost>70</CPUHourCost><EndDate>{date}</EndDate><EndTime>{time}</EndTime>{CORES}")
    with pytest.raises(DocumentError, match=reason):
        parse_request(text)


def test_longest_run_leaves_a_moment_for_its_end() -> None:
    """A machine adds it to a start and writes the sum; 10^12 s (the bound of other numbers) would make none."""
    head = f"<CPUHourCost>70</CPUHourCost>{END}"
    unit = parse_request(document(f"{head}<WallTime>9999999999</WallTime>{CORES}")).units[0]
    assert unit.wall_time is not None
    assert iso(unit.deadline + unit.wall_time).startswith("2343-")
    with pytest.raises(DocumentError, match=r"WallTime.* 10000000000, .* from 1 to 9999999999"):
        parse_request(document(f"{head}<WallTime>10000000000</WallTime>{CORES}"))


@pytest.mark.parametrize("name", ["Intel", "intel", " INTEL "])
def test_intel_is_taken_as_x86_64_with_a_warning(name: str) -> None:
    text = document(f"<CPUHourCost>70</CPUHourCost>{END}<Architecture>{name}</Architecture>{CORES}")
    rfq = parse_request(text)
    assert rfq.units[0].architecture == "x86_64"
    assert len(rfq.warnings) == 1
    assert "line 2: Architecture" in rfq.warnings[0]
    assert "x86_64" in rfq.warnings[0]


@pytest.mark.parametrize(("name", "right"), [("powerPC", "powerpc"), ("amd64", "x86_64"), ("aarch64", "arm")])
def test_unknown_architecture_names_the_nearest(name: str, right: str) -> None:
    text = document(f"<CPUHourCost>70</CPUHourCost>{END}<Architecture>{name}</Architecture>{CORES}")
    with pytest.raises(DocumentError, match=f"line 2: Architecture: got '{name}', expected '{right}'"):
        parse_request(text)


def test_torus_terms_are_read() -> None:
    extension = (
        '<t:Geometry xmlns:t="urn:ramp:torus:1" rotate="false">8x8x16</t:Geometry>'
        '<t:ConnectionType xmlns:t="urn:ramp:torus:1">mesh</t:ConnectionType>'
        '<t:NodeUse xmlns:t="urn:ramp:torus:1">virtual</t:NodeUse>'
    )
    unit = parse_request(document(f"<CPUHourCost>70</CPUHourCost>{END}{CORES}{extension}")).units[0]
    assert unit.torus == TorusTerms((8, 8, 16), rotate=False, connection="mesh", node_use="virtual")
    geometry = '<Geometry xmlns="urn:ramp:torus:1">4x4</Geometry>'
    unit = parse_request(document(f"<CPUHourCost>70</CPUHourCost>{END}{CORES}{geometry}")).units[0]
    assert unit.torus == TorusTerms((4, 4), rotate=True, connection="any")


def test_all_findings_of_a_document_are_told_at_once_in_line_order() -> None:
    text = document(
        f"\n<CPUHourCost>-5</CPUHourCost>\n{END}\n<StartDate>2027-01-01</StartDate>\n"
        "<OperatingSystem>Linus</OperatingSystem>\n<WallTime>x</WallTime>\n<Cores><TotalCores>0</TotalCores></Cores>",
        f"<CPUHourCost>70</CPUHourCost>{END}",
    )
    with pytest.raises(DocumentError) as caught:
        parse_request(text, "job.xml")
    assert str(caught.value).startswith("job.xml: 6 errors\n")
    places = [violation.split(": ")[:2] for violation in caught.value.violations]
    assert places == [
        ["line 3", "CPUHourCost"],
        ["line 4", "EndDate"],
        ["line 6", "OperatingSystem"],
        ["line 7", "WallTime"],
        ["line 8", "TotalCores"],
        ["line 9", "Request"],
    ]


def test_a_single_finding_is_one_line() -> None:
    with pytest.raises(DocumentError) as caught:
        parse_request(document(f"<CPUHourCost>0</CPUHourCost>{END}{CORES}"), "job.xml")
    assert str(caught.value) == ("job.xml: line 2: CPUHourCost: got 0, expected a whole number from 1 to 1000000000000")


def test_window_must_hold_the_wall_time() -> None:
    exact = document(f"<CPUHourCost>1</CPUHourCost>{END}{START}<WallTime>10800</WallTime>{CORES}")
    assert parse_request(exact).units[0].wall_time == 3 * HOUR
    with pytest.raises(DocumentError, match=r"got 10801 s, expected at most 10800 s"):
        parse_request(exact.replace("10800", "10801"))


def test_huge_number_costs_nothing_to_refuse() -> None:
    """int() of thousands of digits raises or burns time; the length is looked at first."""
    with pytest.raises(DocumentError, match="CPUHourCost"):
        parse_request(document(f"<CPUHourCost>{'9' * 80_000}</CPUHourCost>{END}{CORES}"))


@pytest.mark.parametrize("name", ["EndDate", "StartTime", "OperatingSystem", "Colour"])
def test_long_value_is_cut_in_the_message(name: str) -> None:
    value = f"<{name}>{'x' * 80_000}</{name}>"
    end = END.replace("<EndDate>2026-11-21</EndDate>", value) if name == "EndDate" else END + value
    with pytest.raises(DocumentError) as caught:
        parse_request(document(f"<CPUHourCost>70</CPUHourCost>{end}{CORES}"))
    assert name in str(caught.value)
    assert len(str(caught.value)) < 3000


def test_comments_are_allowed_in_files_and_cut_no_value() -> None:
    text = document(f"<!-- cheap --><CPUHourCost>7<!-- -->0</CPUHourCost>{END}{CORES}")
    assert parse_request(text).units[0].cpu_hour_cost == 70


@pytest.mark.parametrize(
    "text",
    [
        f'<!DOCTYPE a [<!ENTITY x "70">]>{document(f"<CPUHourCost>&x;</CPUHourCost>{END}{CORES}")}',
        f"<!DOCTYPE a>{document(f'<CPUHourCost>70</CPUHourCost>{END}{CORES}')}",
        f'<!DOCTYPE a SYSTEM "file:///etc/hostname">{document(f"<CPUHourCost>70</CPUHourCost>{END}{CORES}")}',
    ],
)
def test_document_type_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="DOCTYPE"):
        parse_request(text)


def test_billion_laughs_expand_to_nothing() -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    with pytest.raises(DocumentError):
        parse_request(f'<!DOCTYPE a [<!ENTITY e0 "ha">{entities}]><a>&e11;</a>')


def test_encodings_of_files() -> None:
    body = document(f"<CPUHourCost>70</CPUHourCost>{END}<OSVersion>grün</OSVersion>{CORES}")
    latin = f'<?xml version="1.0" encoding="iso-8859-1"?>{body}'.encode("iso-8859-1")
    assert parse_request(latin).units[0].os_version == "grün"
    assert parse_request(f'<?xml version="1.0" encoding="iso-8859-1"?>{body}').units[0].os_version == "grün"
    assert parse_request(body.encode("utf-16")).units[0].os_version == "grün"


def test_oversize_document_is_refused() -> None:
    with pytest.raises(DocumentError, match="at most 90000"):
        parse_request(document(f"<CPUHourCost>70</CPUHourCost>{END}{CORES}") + " " * 90_000)


def test_file_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "job.xml"
    with pytest.raises(DocumentError, match=r"job\.xml: cannot be read"):
        load_request(path)
    path.write_text("<RequestForQuotation>", "utf-8")
    with pytest.raises(DocumentError, match=r"job\.xml: line 1: not well-formed"):
        load_request(path)
    path.write_text("<Request/>", "utf-8")
    with pytest.raises(DocumentError, match=r"job\.xml: line 1: wrong root element: got Request, expected"):
        load_request(path)


def test_written_document_is_the_published_form() -> None:
    """Golden text, written by hand from the fact sheet's table: names, order, choices."""
    unit = RequestUnit(1, 70, from_iso("2026-11-21T12:00:00Z"), TotalCores(128), from_iso("2026-11-21T09:00:00.5Z"))
    assert write_request(RequestForQuotation((unit,))) == (
        f'<RequestForQuotation xmlns="{RFQ}"><Request><CPUHourCost>70</CPUHourCost>'
        "<EndDate>2026-11-21</EndDate><EndTime>12:00:00Z</EndTime>"
        "<StartDate>2026-11-21</StartDate><StartTime>09:00:00.500000Z</StartTime>"
        "<Cores><TotalCores>128</TotalCores></Cores></Request></RequestForQuotation>"
    )


def test_wall_time_below_a_second_is_not_written() -> None:
    unit = RequestUnit(1, 70, from_iso("2026-11-21T12:00:00Z"), TotalCores(128), wall_time=SECOND + 1)
    with pytest.raises(DocumentError, match="whole seconds"):
        write_request(RequestForQuotation((unit,)))
