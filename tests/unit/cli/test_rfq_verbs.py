"""`ramp rfq new` and `ramp rfq validate`."""

import io
import json
from pathlib import Path

import pytest

from ramp.cli.verbs.rfq import shipped_templates
from ramp.model.instant import HOUR, MINUTE, from_iso
from ramp.model.request import NodeDiskSpace, Nodes, TorusTerms, TotalCores, TotalDiskSpace
from ramp.rfql.request_for_quotation import load_request, parse_request, write_request
from ramp.rfql.xml.namespaces import schemas_dir
from ramp.rfql.xml.parser import indented
from ramp.runtime.clock import SystemClock

EXAMPLES = schemas_dir() / "examples"


def test_a_hyphen_as_output_is_standard_output(tmp_path, ramp, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = ramp("rfq", "new", "--cores", "4", "--walltime", "1h", "--price", "5", "-o", "-")
    assert parse_request(printed.out.encode()).units[0].cores == TotalCores(4)
    assert list(tmp_path.iterdir()) == []


def test_a_new_request_is_a_valid_document_with_what_was_asked(tmp_path, ramp):
    path = tmp_path / "job.xml"
    arguments = ["--start", "2026-12-01T10:00", "--end", "2026-12-01T20:00:00+01:00", "--walltime", "1h30min"]
    terms = ["--os", "LINUX", "--arch", "x86_64", "--ram", "2048", "--cpu-speed", "2000", "--bandwidth", "10000"]
    printed = ramp("rfq", "new", "--cores", "64", "--price", "70", *arguments, *terms, "--disk", "9", "-o", str(path))
    (unit,) = load_request(path).units
    assert unit.cores == TotalCores(64)
    assert unit.cpu_hour_cost == 70
    assert unit.not_before == from_iso("2026-12-01T10:00:00Z")
    assert unit.deadline == from_iso("2026-12-01T19:00:00Z")
    assert unit.wall_time == 90 * MINUTE
    assert (unit.operating_system, unit.architecture) == ("LINUX", "x86_64")
    assert (unit.ram_per_core_mb, unit.cpu_speed_mhz, unit.inter_node_bandwidth_mbps) == (2048, 2000, 10000)
    assert unit.disk == TotalDiskSpace(9)
    assert printed.out == ""  # chatter is on standard error


@pytest.mark.parametrize(
    ("options", "slack"),
    [
        (["--walltime", "30min"], HOUR),  # at least so much
        (["--walltime", "3h"], 3 * HOUR),
        (["--walltime", "3h", "--slack", "10min"], 10 * MINUTE),
        (["--walltime", "3h", "--slack", "0"], 0),
    ],
)
def test_without_an_end_the_window_has_room(ramp, options, slack):
    printed = ramp("rfq", "new", "--cores", "8", "--price", "5", "--start", "2026-12-01T10:00", *options)
    (unit,) = parse_request(printed.out.encode()).units
    assert unit.deadline - unit.not_before - unit.wall_time == slack


def test_without_a_start_the_run_may_begin_whenever_it_is_submitted(ramp):
    begun = SystemClock().now()
    (unit,) = parse_request(ramp("rfq", "new", "--cores", "8", "--price", "5", "--walltime", "1h").out.encode()).units
    assert unit.not_before is None
    assert unit.deadline >= begun + 2 * HOUR


def test_nodes_torus_terms_and_earlier_units(tmp_path, ramp):
    first = tmp_path / "first.xml"
    when = ["--start", "2026-12-01T10:00", "--walltime", "1h", "--price", "5"]
    ramp("rfq", "new", "--cores", "8", *when, "-o", str(first))
    torus = ["--geometry", "8x8x16", "--no-rotate", "--connection", "torus", "--node-use", "virtual"]
    nodes = ["--nodes", "16", "--node-cores", "8", "--node-disk", "3"]
    one, two = parse_request(ramp("rfq", "new", *nodes, *torus, *when, "--add", str(first)).out.encode()).units
    assert one.cores == TotalCores(8)
    assert (two.number, two.cores, two.disk) == (2, Nodes(16, 8), NodeDiskSpace(3))
    assert two.torus == TorusTerms((8, 8, 16), rotate=False, connection="torus", node_use="virtual")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--price", "5", "--walltime", "1h"], "--cores, or both --nodes and --node-cores"),
        (["--price", "5", "--walltime", "1h", "--nodes", "4"], "--cores, or both --nodes and --node-cores"),
        (["--price", "5", "--walltime", "1h", "--cores", "4", "--nodes", "4", "--node-cores", "1"], "--cores, or both"),
        (["--price", "5", "--cores", "4"], "no length of the run: give --walltime"),
        (["--cores", "4", "--walltime", "1h"], "missing option '--price'"),
        (["--price", "0", "--cores", "4", "--walltime", "1h"], "0 is not in the range"),
        (["--price", "5", "--cores", "4", "--walltime", "0"], "must be above 0 and below 317 years: got '0'"),
        (["--price", "5", "--cores", "4", "--walltime", "1h", "--disk", "1", "--node-disk", "1"], "either --disk or"),
        (["--price", "5", "--cores", "4", "--walltime", "1h", "--geometry", "8by8"], "cannot read --geometry '8by8'"),
        (["--price", "5", "--cores", "4", "--walltime", "1h", "--no-rotate"], "--no-rotate needs --geometry"),
        (["--price", "5", "--cores", "4", "--walltime", "1h", "--arch", "vax11"], "Architecture: got 'vax11'"),
        (["--price", "5", "--cores", "4", "--start", "+2h", "--end", "+1h"], "End"),
        (["--price", "5", "--cores", "4", "--walltime", "2h", "--start", "+1h", "--end", "+2h"], "WallTime"),
        (["--price", "5", "--cores", "4", "--walltime", "1h", "-o", "/no/such/folder/x.xml"], "cannot be written"),
        (["--price", "5", "--cores", "4", "--walltime", "1h", "--add", "/no/such.xml"], "does not exist"),
    ],
)
def test_senseless_terms_are_refused(arguments, told, ramp):
    said = ramp("rfq", "new", *arguments, code=2)
    assert said.out == ""
    assert told in said.err


def test_valid_examples_validate_and_invalid_ones_do_not(ramp):
    valid = sorted((EXAMPLES / "valid").glob("rfq-*.xml"))
    invalid = sorted((EXAMPLES / "invalid").glob("rfq-*.xml"))
    printed = ramp("rfq", "validate", "--json", *map(str, valid))
    assert all(entry["valid"] and entry["units"] for entry in json.loads(printed.out))
    first, *others = json.loads(ramp("rfq", "validate", "--json", str(valid[0]), *map(str, invalid), code=2).out)
    assert first["valid"]
    assert not any(entry["valid"] for entry in others)
    assert all(entry["violations"] for entry in others)


def test_validate_for_people_puts_findings_on_standard_error(ramp):
    good = str(EXAMPLES / "valid" / "rfq-workflow.xml")
    bad = str(EXAMPLES / "invalid" / "rfq-price-zero.xml")
    said = ramp("rfq", "validate", good, bad, code=2)
    assert f"{good}: valid" in said.out
    assert bad not in said.out
    assert f"ramp: {bad}: " in said.err


def test_validate_reads_standard_input(monkeypatch, ramp):
    data = (EXAMPLES / "valid" / "rfq-smallest.xml").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert "-: valid, 1 unit" in ramp("rfq", "validate", "-").out


def test_indenting_shows_the_levels():
    assert indented("<a><b>1</b><c><d>2</d></c></a>") == "<a>\n  <b>1</b>\n  <c>\n    <d>2</d>\n  </c>\n</a>\n"


@pytest.mark.parametrize("path", sorted((EXAMPLES / "valid").glob("rfq-*.xml")), ids=lambda path: path.stem)
def test_indenting_changes_nothing_that_is_read(path: Path):
    document = load_request(path)
    assert parse_request(indented(write_request(document)).encode()) == document


def test_a_template_says_what_the_command_line_does_not(tmp_path, ramp):
    template = tmp_path / "mine.toml"
    terms = ["cores = 64", 'walltime = "2h"', 'slack = "30min"', "price = 50", "no-rotate = true", 'geometry = "8x8"']
    template.write_text("\n".join(terms))
    printed = ramp("rfq", "new", "--template", str(template), "--start", "2026-12-01T10:00", "--price", "60")
    (unit,) = parse_request(printed.out.encode()).units
    assert (unit.cores, unit.wall_time, unit.cpu_hour_cost) == (TotalCores(64), 2 * HOUR, 60)
    assert unit.deadline - unit.not_before - unit.wall_time == 30 * MINUTE
    assert unit.torus == TorusTerms((8, 8), rotate=False)


@pytest.mark.parametrize("name", ["small", "large", "torus"])
def test_the_templates_that_come_along_are_whole(name, ramp):
    (unit,) = parse_request(ramp("rfq", "new", "--template", name).out.encode()).units
    assert (unit.torus is not None) == (name == "torus")
    assert set(shipped_templates()) == {"small", "large", "torus"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("coers = 5", "coers: unknown option; did you mean 'cores'?"),
        ("cores = 1.5", "cores: got 1.5, expected a text or a whole number"),
        ("cores = true", "cores: got True"),
        ('no-rotate = "yes"', "expected true or false"),
        ('walltime = "long"', "invalid value for '--walltime'"),
        ('output = "/etc/passwd"', "output: unknown option"),
        ("cores", "cannot be read"),
    ],
)
def test_a_template_with_a_slip_is_refused(tmp_path, ramp, text, told):
    template = tmp_path / "mine.toml"
    template.write_text(text)
    assert told in ramp("rfq", "new", "--template", str(template), "--price", "5", code=2).err


def test_a_template_that_is_none_names_those_there_are(ramp):
    assert "template of RAMP: large, small, torus" in ramp("rfq", "new", "--template", "smal", code=2).err


def test_what_everything_may_cost_stands_in_the_document_and_adds_up(tmp_path, ramp):
    terms = ["--cores", "8", "--price", "5", "--walltime", "1h"]
    first, both = tmp_path / "first.xml", tmp_path / "both.xml"
    ramp("rfq", "new", *terms, "--max-cost", "99.50", "-o", str(first))
    assert '<MaxCost xmlns="urn:ramp:limits:1">99.50</MaxCost>' in first.read_text()
    ramp("rfq", "new", *terms, "--max-cost", "1", "--add", str(first), "-o", str(both))
    assert load_request(both).max_cost == 10_050
    assert "valid, 2 units, at most 100.50 credits together" in ramp("rfq", "validate", str(both)).out
    assert "only some of the requests have a MaxCost" in ramp("rfq", "new", *terms, "--add", str(first), code=2).err


def test_a_start_probability_is_written_and_what_cannot_have_one_is_refused(tmp_path, ramp):
    one, two = tmp_path / "one.xml", tmp_path / "two.xml"
    terms = ["--cores", "8", "--price", "70", "--walltime", "1h", "--end", "2030-12-01T20:00"]
    ramp("rfq", "new", *terms, "--start-probability", ".95", "-o", str(one))
    assert load_request(one).units[0].start_probability == 0.95
    ramp("rfq", "new", *terms, "--start-probability", "95", "-o", str(two), code=2)
    ramp("rfq", "new", *terms, "-o", str(one))
    ramp("rfq", "new", *terms, "--add", str(one), "-o", str(two))
    for verb in ("submit", "quote"):
        assert "a request of 2 units" in ramp(verb, str(two), "--start-probability", ".9", code=2).err
        assert "--start-probability" in ramp(verb, str(one), "--start-probability", "0", code=2).err


def test_sites_are_written_once_each_in_lower_case_and_what_is_no_domain_is_refused(tmp_path, ramp):
    path, template = tmp_path / "there.xml", tmp_path / "there.toml"
    terms = ["--cores", "8", "--price", "70", "--walltime", "1h"]
    named = ["--site", "West.example", "--site", "south1@south.example", "--site", "west.example"]
    ramp("rfq", "new", *terms, *named, "-o", str(path))
    assert load_request(path).units[0].sites == ("west.example", "south1@south.example")
    printed = ramp("rfq", "validate", str(path), "--json")
    assert json.loads(printed.out)[0]["units"][0]["sites"] == ["west.example", "south1@south.example"]
    template.write_text('site = "north.example south.example"')
    ramp("rfq", "new", *terms, "--template", str(template), "-o", str(path))
    assert load_request(path).units[0].sites == ("north.example", "south.example")
    ramp("rfq", "new", *terms, "-o", str(path))
    assert load_request(path).units[0].sites is None
    for command in (["rfq", "new", *terms], ["submit", str(path)], ["quote", str(path)]):
        assert "--site 'west1@' is neither a site nor a seller" in ramp(*command, "--site", "west1@", code=2).err


def test_a_written_request_shows_its_window_in_the_zone_of_the_reader(new_york, tmp_path, ramp):
    path = tmp_path / "job.xml"
    arguments = ("--cores", "4", "--walltime", "1h", "--price", "5", "--start", "2099-12-01T18:00", "-o", str(path))
    said = ramp("rfq", "new", *arguments).err
    window = "from 2099-12-01T18:00:00-05:00, complete by 2099-12-01T20:00:00-05:00"
    assert said == f"{path}: 1 unit, {window}\n"
    assert load_request(path).units[0].not_before == from_iso("2099-12-01T23:00:00Z")


@pytest.mark.parametrize("start", ["yesterday", "-3h", "1970-01-01"])
def test_a_request_whose_window_is_over_is_not_written(start, tmp_path, ramp):
    arguments = ("--cores", "4", "--walltime", "1h", "--price", "5", "--start", start, "-o", str(tmp_path / "job.xml"))
    assert "the window of the request is over: it ends at" in ramp("rfq", "new", *arguments, code=2).err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("amount", "told"), [("-5", "must be above 0: got '-5'"), ("1e15", "invalid amount of credits: got '1e15'")]
)
def test_a_deposit_of_no_amount_is_an_error_about_the_amount(amount, told, tmp_path, ramp):
    printed = ramp("bank", "deposit", "alice", amount, "--state-dir", str(tmp_path), code=2)
    assert f"invalid value for 'CREDITS': {told}, expected an amount" in printed.err
