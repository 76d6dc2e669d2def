"""Times, amounts and durations as people read them, and fields as JSON, CSV, tables and pairs."""

import json
import subprocess
from dataclasses import dataclass, replace

import pytest
from rich.console import Console

from ramp.cli.views.fields import AMOUNT, CREDITS, NUMBER, PROSE, Field, Fields, address
from ramp.cli.views.launch_snippets import SNIPPETS, clock_text, snippet
from ramp.cli.views.output import (
    amount_text,
    bar_text,
    count_text,
    duration_text,
    moment_text,
    print_line,
    print_pairs,
    print_rows,
    say,
)
from ramp.cli.views.reports import agreement_object, print_agreement
from ramp.control.events import AgreementStanding
from ramp.errors import ConfigurationError
from ramp.model.contents import SlotMoved
from ramp.model.instant import DAY, HOUR, MILLISECOND, MINUTE, SECOND, from_iso, iso
from ramp.model.money import credits_decimal
from ramp.model.request import Nodes, RequestUnit, TorusTerms, TotalCores
from tests.agreements import change_of
from tests.unit.cli.conftest import command_with_json
from tests.unit.conftest import START, agreement, offer


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (25 * MILLISECOND, "0.025 s"),
        (12 * SECOND, "12.0 s"),
        (HOUR, "1 h"),
        (90 * MINUTE, "1 h 30 min"),
        (DAY + 5 * SECOND, "1 d 5 s"),
    ],
)
def test_durations(duration, expected):
    assert duration_text(duration) == expected


def test_moments_amounts_and_counts():
    assert moment_text(from_iso("2026-11-21T08:30:00.999999Z")) == "2026-11-21T08:30:00Z"
    assert amount_text(-123450) == "-1 234.50 credits"
    assert [credits_decimal(each) for each in (123450, -5, 10**15 + 1)] == ["1234.50", "-0.05", "10000000000000.01"]
    assert (count_text(1, "unit"), count_text(0, "unit"), count_text(2, "unit")) == ("1 unit", "0 units", "2 units")


def test_bars_stay_within_their_range():
    low, nothing, _, full, over = bar_text([-1, 0, 0.5, 1, 2])
    assert low == nothing == "▁"
    assert full == over == "█"


OFFER = replace(offer(), offer_id="offer-1", end=START + 90 * MINUTE, valid_for=HOUR, source="")
ASKED = RequestUnit(1, 70, from_iso("2026-12-01T12:00:00Z"), TotalCores(64))
AGREEMENT = agreement(OFFER, ASKED, "thunder1-7")
NODES = replace(AGREEMENT, request=replace(ASKED, cores=Nodes(16, 4)))
MIDPLANES = replace(
    AGREEMENT,
    offer=replace(OFFER, cores=4096, placement="bgl[000x011] 1x2x2 torus"),
    request=replace(ASKED, cores=TotalCores(4096), torus=TorusTerms(node_use="virtual")),
)
HALF = replace(MIDPLANES, request=replace(ASKED, cores=TotalCores(4096)))


def test_a_slot_that_was_moved_is_shown_where_it_is_now(capsys):
    stays = AgreementStanding(AGREEMENT, "active")
    word = SlotMoved(AGREEMENT.agreement_id, AGREEMENT.reservation_id, "n[2-3]", AGREEMENT.issued_at)
    moved = replace(stays, moved=word)
    shown = agreement_object(moved, str)
    assert (shown["moved_to"], shown["moved_at"]) == ("n[2-3]", iso(word.moved_at))
    assert (agreement_object(stays, str)["moved_to"], agreement_object(stays, str)["moved_at"]) == (None, None)
    for entry, told in ((stays, False), (moved, True)):
        print_agreement(entry, str, AGREEMENT.issued_at)
        said = capsys.readouterr().out
        assert ("Moved to" in said and "n[2-3] (at " in said) is told


def test_a_slot_that_has_shrunk_is_shown_and_launched_on_as_it_is_now(capsys):
    owed = 96_000 - OFFER.cost  # 32 cores for an hour at 30 credits are left
    half = change_of(NODES, 32, until=from_iso("2026-12-01T11:00:00Z"), effective_at=OFFER.start, amount=owed)
    entry = AgreementStanding(NODES, "active", amendments=(half,))
    shown = agreement_object(entry, str)
    assert (shown["cores"], shown["end"], shown["cost"]) == (32, "2026-12-01T11:00:00Z", "960.00")
    assert (shown["charged"], shown["returned"]) == ("2880.00", "1920.00")
    print_agreement(entry, str, OFFER.start)
    said = capsys.readouterr().out
    assert "960.00 credits (2 880.00 credits charged, 1 920.00 credits returned)" in said
    more = replace(half, number=2, cores=48, amount=64_000, order_id="order-2")  # 16 for an hour at 40
    grown = AgreementStanding(NODES, "active", amendments=(half, more))
    shown = agreement_object(grown, str)
    assert (shown["charged"], shown["returned"], shown["cost"]) == ("3520.00", "1920.00", "1600.00")
    cancelled = agreement_object(replace(grown, state="cancelled", refunded=160_000), str)
    assert (cancelled["charged"], cancelled["returned"], cancelled["cost"]) == ("3520.00", "3520.00", "0.00")
    print_agreement(grown, str, OFFER.start)
    assert "1 600.00 credits (3 520.00 credits charged, 1 920.00 credits returned)" in capsys.readouterr().out
    limit = replace(NODES, request=replace(ASKED, cores=TotalCores(16)), best_offer=True)
    print_agreement(AgreementStanding(limit, "active"), str, OFFER.start)
    said = " ".join(capsys.readouterr().out.split())
    assert "Maximum cost 1 680.00 credits, 16 cores at 70 credits/core-hour; you approved a best offer" in said
    boxed = replace(NODES, offer=replace(OFFER, placement="bgl[000x011] 1x2x2"))
    for amendments, told in (((), "Placement "), ((half,), f"Placement of {OFFER.cores} cores")):
        print_agreement(AgreementStanding(boxed, "active", amendments=amendments), str, OFFER.start)
        assert told in capsys.readouterr().out
    assert snippet("sbatch", entry.amended, str).endswith(
        "sbatch --reservation=thunder1-7 --ntasks=32 --time=01:00:00 job.sh"
    )


@pytest.mark.parametrize(
    ("style", "bought", "expected"),
    [
        ("sbatch", AGREEMENT, "sbatch --reservation=thunder1-7 --ntasks=64 --time=01:30:00 job.sh"),
        ("sbatch", NODES, "sbatch --reservation=thunder1-7 --nodes=16 --ntasks-per-node=4 --time=01:30:00 job.sh"),
        ("qsub", AGREEMENT, "qsub -cwd -ar thunder1-7 -pe mpi 64 job.sh"),
        ("qsub", AGREEMENT, "qsub -q thunder1-7 -l ncpus=64 -l walltime=01:30:00 job.sh"),
        ("psij", AGREEMENT, "duration=timedelta(seconds=5400), reservation_id='thunder1-7'"),
        ("psij", AGREEMENT, "node_count=nodes, processes_per_node=64 // nodes"),
        ("psij", AGREEMENT, 'JobSpec(str(here / "job.sh"), directory=here, '),
        ("psij", NODES, "node_count=16, processes_per_node=4"),
        ("psij", replace(AGREEMENT, reservation_id="63"), 'get_instance("gridengine")'),
        ("parsl", AGREEMENT, "scheduler_options='#SBATCH --reservation=thunder1-7'\n"),
        ("parsl", AGREEMENT, r'f"\n#SBATCH --ntasks-per-node={64 // nodes}"'),
        ("parsl", NODES, "nodes_per_block=16,"),
        ("mpirun", MIDPLANES, "sbatch --reservation=thunder1-7 --time=01:30:00 job.sh"),
        ("mpirun", MIDPLANES, 'mpirun -partition "${BGL_PARTITION_ID:-$MPIRUN_PARTITION}" -mode VN -np 4096 '),
        ("mpirun", HALF, "-mode CO -np 2048 "),
        ("env", AGREEMENT, "export RAMP_RESERVATION=thunder1-7"),
        ("env", AGREEMENT, "export RAMP_END=2026-12-01T11:30:00Z"),
    ],
)
def test_snippets_name_the_reservation_as_each_launcher_wants_it(style, bought, expected):
    assert expected in snippet(style, bought, lambda name: name.partition("@")[0])


def test_the_script_for_blue_gene_hands_its_block_to_mpirun(tmp_path):
    """Run by a shell, with an mpirun that prints what it is told."""
    mpirun, script = tmp_path / "mpirun", tmp_path / "job.sh"
    mpirun.write_text("#!/bin/sh\necho $2 $4 $6\n")
    mpirun.chmod(0o755)
    script.write_text(snippet("mpirun", MIDPLANES, str) + "\n")
    for variable in ("BGL_PARTITION_ID", "MPIRUN_PARTITION"):
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", variable: "RMP7"}
        assert subprocess.run(["sh", script], env=environment, capture_output=True, text=True, check=True).stdout == (
            "RMP7 VN 4096\n"
        )


def test_mpirun_is_for_machines_that_give_out_places():
    with pytest.raises(ConfigurationError, match="thunder1-7 is on thunder1, which assigns no partitions"):
        snippet("mpirun", AGREEMENT, lambda name: name.partition("@")[0])


def test_a_snippet_for_a_simulated_machine_says_that_it_only_shows_the_form():
    """`Offer.source`: the queue of a machine that is there is its own, `live`."""
    for style in set(SNIPPETS) - {"env"}:
        bought = MIDPLANES if style == "mpirun" else AGREEMENT
        told = "# thunder1 is simulated: it has no batch system"
        assert told not in snippet(style, bought, lambda name: name.partition("@")[0])
        for source in ("log", "synthetic"):
            simulated = replace(bought, offer=replace(bought.offer, source=source))
            lines = snippet(style, simulated, lambda name: name.partition("@")[0]).splitlines()
            (found,) = [number for number, line in enumerate(lines) if line.startswith(told)]
            assert all(line.startswith("#") for line in lines[: found + 1])


def test_of_a_job_in_a_queue_no_snippet_makes_a_reservation():
    queued = replace(AGREEMENT, offer=replace(AGREEMENT.offer, start_probability=0.9, if_late="whole"))
    for style in set(SNIPPETS) - {"env"}:
        with pytest.raises(ConfigurationError, match=f"is job {AGREEMENT.reservation_id} of a queue"):
            snippet(style, queued, str)
    assert AGREEMENT.reservation_id in snippet("env", queued, str)


def test_a_job_must_not_outlive_its_reservation():
    assert clock_text(HOUR + 59_900 * MILLISECOND) == "01:00:59"
    assert clock_text(100 * HOUR) == "100:00:00"


@pytest.fixture
def terminal(monkeypatch):
    """`terminal(width)` makes the console a terminal of that width."""

    def make(width):
        drawn = Console(width=width, force_terminal=True, highlight=False, color_system=None)
        monkeypatch.setattr("ramp.cli.views.output.console", lambda error=False: drawn)
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)

    return make


ROWS = [
    ("thunder1-7", "upcoming", "2026-12-01T10:00:00Z", "1 920.00", "no offer meets the request for unit 1, sadly"),
    ("ricc2-12", "active", "2026-12-01T11:00:00Z", "20.00", ""),
]
COLUMNS = ("Reservation", "State", "Start", "Cost (credits)", "Reason")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_table_fits_its_terminal_and_cuts_no_id(width, terminal, capsys):
    terminal(width)
    print_rows(COLUMNS, ROWS, right=("Cost (credits)",), wrap=("Reason",))
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines()) <= width
    for row in ROWS:
        for cell in row[:4]:
            assert cell in text
    assert "sadly" in text
    assert len(text.splitlines()) == {40: 12, 60: 10, 80: 5, 120: 3}[width]


def test_columns_draw_together_before_a_table_falls_into_paragraphs(terminal, capsys):
    """Cells of 6, 5 and three times 20, and a heading of 15: 96 columns with gaps of two; with its unit below, 85."""
    columns = ("Job", "User", "Price (credits)", "Submitted", "Start", "End")
    rows = [("123456", "alice", "70", *["2026-12-01T10:00:00Z"] * 3)]
    for width, height in ((96, 2), (95, 3), (85, 3), (84, 6)):
        terminal(width)
        print_rows(columns, rows, right=("Price (credits)",))
        lines = capsys.readouterr().out.splitlines()
        assert max(len(line) for line in lines) <= width
        assert len(lines) == height
        assert " ".join(lines).split()[-6:] == [str(cell) for cell in rows[0]] or height == 6


def test_a_table_in_a_pipe_is_as_wide_as_it_must_be(capsys):
    print_rows(COLUMNS, ROWS, right=("Cost (credits)",), wrap=("Reason",))
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("width", [60, 80, 120])
def test_pairs_fit_their_terminal_and_cut_no_id(width, terminal, capsys):
    terminal(width)
    timing = ", ".join(f"limit_{number}_s {number}" for number in range(20))
    print_pairs((("File", "agreement-" + "0" * 32), ("Ledger", ""), ("Timing", timing)))
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= width
    assert lines[0] == f"File    agreement-{'0' * 32}"
    assert " ".join(line[8:] for line in lines[1:]) == timing
    assert {line[:8] for line in lines[1:]} == {"Timing  ", " " * 8}


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("shown", [print_line, say])
def test_a_sentence_fits_its_terminal_and_cuts_no_id(shown, width, terminal, capsys):
    words = "Request request-283d2a8607991085af4b79d5: committed, 3 rounds in 0.546 s, 1 unit for 2 560.00 credits"
    terminal(width)
    shown(words)
    lines = "".join(capsys.readouterr()).splitlines()
    assert " ".join(lines) == words
    assert all(len(line) <= width for line in lines)
    assert len(lines) > 1


def test_a_line_that_is_broken_already_is_broken_there_too(terminal, capsys):
    terminal(40)
    print_line("one word after another and so on until the end\na second line")
    assert capsys.readouterr().out == "one word after another and so on until\nthe end\na second line\n"


def test_a_sentence_in_a_pipe_is_one_line(capsys):
    print_line("one word after another " * 30)
    assert len(capsys.readouterr().out.splitlines()) == 1


@dataclass(frozen=True)
class Slot:
    seller: str
    cores: int
    cost: int
    note: str | None = None


FIELDS: Fields[Slot] = Fields(
    Field("resource", "Resource", lambda slot: slot.seller, address(lambda name: name.partition("@")[0])),
    Field("cores", "Cores", lambda slot: slot.cores, NUMBER),
    Field("cost", "Cost", lambda slot: slot.cost, AMOUNT),
    Field("note", "Note", lambda slot: slot.note, PROSE, shown_if=lambda slot: slot.note is not None),
    Field("free", "", lambda slot: slot.cost == 0),
    Field("", "Size", lambda slot: slot.cores, text=lambda slot: "large" if slot.cores > 9 else "small"),
)
SLOTS = [Slot("curie1@localhost", 8, 123_450), Slot("thunder@localhost", 64, 0, "moved")]


def test_programs_get_exact_values_and_null(capsys: pytest.CaptureFixture[str]) -> None:
    with command_with_json():
        FIELDS.print_list(SLOTS, empty="No slots")
    first, _ = json.loads(capsys.readouterr().out)
    assert first == {"resource": "curie1@localhost", "cores": 8, "cost": "1234.50", "note": None, "free": False}
    assert FIELDS.nothing() == dict.fromkeys(first)
    FIELDS.print_csv(SLOTS[:1])
    assert capsys.readouterr().out == "resource,cores,cost,note,free\ncurie1@localhost,8,1234.50,,False\n"


def test_people_get_a_table_whose_numbers_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    FIELDS.print_list(SLOTS, empty="No slots")
    assert capsys.readouterr().out.splitlines() == [
        "Resource  Cores      Cost  Note   Size",
        "curie1        8  1 234.50         small",
        "thunder      64      0.00  moved  large",
    ]
    FIELDS.print_table(SLOTS[:1])
    assert "Note" not in capsys.readouterr().out
    FIELDS.print_list([], empty="No slots")
    assert capsys.readouterr().out == "No slots\n"


def test_one_thing_is_shown_in_pairs_without_what_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    FIELDS.print_one(SLOTS[0])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["Resource", "Cores", "Cost", "Size"]
    with command_with_json():
        FIELDS.print_one(SLOTS[0])
    assert json.loads(capsys.readouterr().out) == FIELDS.plain(SLOTS[0])
    cost: Fields[Slot] = Fields(Field("cost", "Cost", lambda slot: slot.cost, CREDITS))
    cost.print_pairs(SLOTS[0])
    assert capsys.readouterr().out.split() == ["Cost", "1", "234.50", "credits"]
