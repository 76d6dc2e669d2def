"""`ramp smap` against the sample of Slurm's documentation, and its other ways out."""

import itertools
import json
from pathlib import Path

import matplotlib.image
import pytest
from click.testing import CliRunner
from matplotlib.patches import Circle, PathPatch

from ramp.errors import ConfigurationError, DocumentError, MachineError
from simulation.cli.machines import hostlist, smap
from simulation.cli.simulate import simulate
from simulation.machine_files import load_machine
from simulation.machines.interface import Connection, JobRequest
from simulation.machines.view import view_of_trace
from simulation.plots.machine3d import machine_figure
from simulation.queueing.trace import header_line

pytestmark = pytest.mark.loops

SAMPLE = Path(__file__).parent / "smap" / "slurm_sample.json"
PRINTED = (Path(__file__).parent / "smap" / "slurm_sample.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def cache_of_its_own(tmp_path_factory):
    """Keep link tables out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def run(command, *arguments, **options):
    result = CliRunner().invoke(command, [str(argument) for argument in arguments], **options)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_the_sample_of_slurms_documentation():
    assert run(smap, "--state", SAMPLE, "--lower", "-c") == PRINTED


def test_letters_begin_with_upper_case_as_in_smap_itself():
    assert run(smap, "bgl", "--state", SAMPLE, "-c").splitlines()[0] == PRINTED.splitlines()[0].replace(
        "a a a a b b d d", "A A A A B B D D"
    )


def test_json_has_the_cables_of_the_lines():
    """In the order of the file: 1.4>0.3 leaves switch 1 and enters switch 0; the short rings are 0>1>3>2>0."""
    cables = json.loads(run(smap, "bgl", "--json"))["cables"]
    assert (list(cables), len(cables["x"]), cables["x"][:3]) == (["x", "y", "z"], 14, [[1, 0], [2, 0], [0, 1]])
    assert cables["y"] == cables["z"] == [[0, 1], [1, 3], [3, 2], [2, 0]]
    assert json.loads(run(smap, "angara-4x4x4", "--json"))["cables"] == {}


def test_json_has_the_same_map():
    told = json.loads(run(smap, "--state", SAMPLE, "--lower", "--json"))
    lines = PRINTED.splitlines()
    assert [line.rstrip() for line in told["map"]] == [line[:18].rstrip() for line in lines]
    assert (told["units"], told["allocated"], told["out_of_service"]) == (128, 108, 1)
    assert [(job["id"], job["nodes"]) for job in told["jobs"]][-1] == ("e", "bgl[612x713]")


def test_colours_only_when_wanted():
    assert "\x1b" not in run(smap, "--state", SAMPLE)
    colored = run(smap, "--state", SAMPLE, "--color", "always")
    assert "\x1b[31mA\x1b[0m \x1b[31mA\x1b[0m" in colored
    plain = colored
    for code in ("\x1b[0m", *(f"\x1b[3{i}m" for i in range(1, 7))):
        plain = plain.replace(code, "")
    assert plain.splitlines() == run(smap, "--state", SAMPLE).splitlines()


def test_a_job_can_be_tried():
    printed = run(smap, "--state", SAMPLE, "--lower", "--test-only", "-g 1x4x2 --conn-type=TORUS")
    told = json.loads(run(smap, "--state", SAMPLE, "--test-only", "-g 2x2x2 -R", "--json"))
    assert "f  12379 -         RMP12379 --test-only" in printed
    # only x=4..5, y=0..1 is free all through z: a 2x2x2 lies there
    assert told["jobs"][-1]["nodes"] == "bgl[400x511]"
    assert told["test_only"]["fits"] is True
    told = json.loads(run(smap, "--state", SAMPLE, "--test-only", "-g 3x3x3", "--json"))
    assert told["jobs"][-1]["state"] == "PD"
    assert told["test_only"] == {"fits": False, "fits_empty": True, "cables": [], "link_count": None}


def test_a_tried_job_that_never_fits_is_told_from_one_that_waits():
    result = CliRunner().invoke(smap, ["bgl", "--test-only", "-g 9x2x2", "--json"], catch_exceptions=False)
    assert json.loads(result.stdout)["test_only"] == {
        "fits": False, "fits_empty": False, "cables": [], "link_count": None,
    }  # fmt: skip
    assert "would not fit bgl even if nothing ran" in result.stderr
    with pytest.raises(ConfigurationError, match=r"--test-only: .*No closing quotation"):
        run(smap, "bgl", "--test-only", "--geometry='2x2")


def test_a_tried_job_keeps_clear_of_what_is_out_of_service(tmp_path):
    path = tmp_path / "state.json"
    jobs = [{"job_number": 7, "nodes": "bgl[700x711,730]"}, {"job_number": 8, "nodes": "bgl712"}]
    path.write_text(json.dumps({"down": "bgl[000x333]", "drained": "bgl[400x633]", "jobs": jobs}))
    told = json.loads(run(smap, "--state", path, "--test-only", "-g 1x1x1", "--json"))
    assert told["jobs"][-1]["nodes"] == "bgl702"
    assert told["jobs"][-1]["job_number"] == 9


FOUR = """
name = "four"
kind = "cabled-torus"
prefix = "q"
drained = "q0000"
""" + "".join(f'[[dimension]]\nname = "{name}"\nring = {ring}\n' for name, ring in (
    ("a", [0, 1]), ("x", [0, 1, 2]), ("y", [0, 1]), ("z", [0, 1]),
))  # fmt: skip


def test_four_dimensions_are_slices_side_by_side(tmp_path):
    machine, state, svg = tmp_path / "four.toml", tmp_path / "state.json", tmp_path / "four.svg"
    machine.write_text(FOUR)
    jobs = [{"job_number": 1, "nodes": "q[0100x0201]"}, {"job_number": 2, "nodes": "q[1010x1211]"}]
    state.write_text(json.dumps({"jobs": jobs}))
    told = json.loads(run(smap, machine, "--state", state, "--json", "--svg", svg))
    assert told["map"] == [
        "a=0      a=1",
        " . . .    B B B",
        ". . .    B B B",
        "",
        " # A A    . . .",
        ". A A    . . .",
    ]
    assert svg.read_text().count("<path") > 24 * 3


def test_fewer_dimensions(tmp_path):
    machine, state = tmp_path / "two.toml", tmp_path / "state.json"
    parts = FOUR.replace("q0000", "q00").split("[[dimension]]")
    machine.write_text("[[dimension]]".join([parts[0], *parts[2:4]]))
    state.write_text(json.dumps({"jobs": [{"job_number": 1, "nodes": "q[10x21]"}]}))
    assert json.loads(run(smap, machine, "--state", state, "--json"))["map"] == [" # A A", ". A A"]
    machine.write_text("[[dimension]]".join([parts[0].replace("q00", "q0"), parts[2]]))
    assert json.loads(run(smap, machine, "--json", "--svg", tmp_path / "one.svg"))["map"] == ["# . ."]


def test_a_map_too_large_to_read_is_refused():
    with pytest.raises(MachineError, match="at most 65536 units, got 100000"):
        run(smap, "flat:100000")


def test_tables_of_blocks_reservations_and_slurm_partitions(tmp_path):
    state = {
        "time_s": 100,
        "blocks": [{"name": "RMP0", "state": "BUSY", "user": "joseph", "connection": "torus", "nodes": "bgl[000x333]",
                    "node_use": "coprocessor"}],
        "reservations": [{"name": "show", "start_s": 50, "end_s": 150, "nodes": "bgl[400x433]"},
                         {"name": "late", "start_s": 150, "end_s": 250, "nodes": "bgl[500x533]"}],
        "slurm_partitions": [{"name": "batch", "time_limit": "12:00:00", "nodes": "bgl[000x733]"}],
    }  # fmt: skip
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state))

    def table(display):
        return [line[20:].rstrip() for line in run(smap, "--state", path, "-D", display).splitlines() if line[20:]]

    assert table("b") == [
        "ID PARTITION BG_BLOCK STATE USER   CONN  NODE_USE    NODES BP_LIST",
        "A  bgl       RMP0     BUSY  joseph TORUS COPROCESSOR    64 bgl[000x333]",
    ]
    assert table("r") == [
        "ID RESV_NAME STATE    START_S END_S NODES NODELIST",
        "A  show      ACTIVE        50   150    16 bgl[400x433]",
        "B  late      INACTIVE     150   250    16 bgl[500x533]",
    ]
    assert table("s") == [
        "ID PARTITION AVAIL TIMELIMIT NODES NODELIST",
        "A  batch     up     12:00:00   128 bgl[000x733]",
    ]
    assert "ID " not in run(smap, "--state", path, "-D", "s", "-h")


@pytest.fixture
def trace(tmp_path):
    machine = load_machine("bgl")
    rows = []
    for job, (shape, start, end) in enumerate([((4, 4, 4), 10, 50), ((2, 2, 4), 20, 90), ((8, 4, 4), 90, 95)], 1):
        size = shape[0] * shape[1] * shape[2]
        if job == 3:
            machine = load_machine("bgl")
        placement = machine.place(JobRequest(job, size, shape, False, Connection.TORUS))
        machine.allocate(placement)
        times = {"job_number": job, "submit_time": 5, "start_time": start, "end_time": end}
        rows.append({**times, **machine.describe(placement)})
    path = tmp_path / "trace.jsonl"
    lines = [header_line(load_machine("bgl"), "bgl"), *rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in lines))
    return path


def test_a_trace_at_any_second(trace):
    def jobs(at):
        told = json.loads(run(smap, "--trace", trace, "--at", at, "--json"))
        return [(job["job_number"], job["state"]) for job in told["jobs"]]

    assert jobs(0) == []
    assert jobs(5) == [(1, "PD"), (2, "PD"), (3, "PD")]
    assert jobs(10) == [(1, "R"), (2, "PD"), (3, "PD")]
    assert jobs(49.5) == [(1, "R"), (2, "R"), (3, "PD")]
    assert jobs(50) == [(2, "R"), (3, "PD")]
    assert jobs(90) == [(3, "R")]
    assert jobs(95) == []
    printed = run(smap, "--trace", trace, "--at", 30)
    assert "waiting..." in printed
    assert "A A A A B B . ." in printed


@pytest.mark.parametrize(
    ("begin", "step", "seconds"),
    [
        (5, 40, ["5", "45", "85"]),
        (2_592_005, 0.5, ["2592005", "2592005.5", "2592006"]),  # a month of a log needs more than six digits
    ],
)
def test_live_redraws_as_time_goes_on(trace, begin, step, seconds):
    printed = run(smap, "--trace", trace, "--at", begin, "-i", "0.1", "--step", step, "--count", 3)
    found = [line for line in printed.splitlines() if line.startswith("second")]
    assert found == [f"second {each}" for each in seconds]


def test_each_job_of_a_trace_runs_in_a_block(trace):
    """As in Slurm's dynamic layout; a tried job's block tells its --node-use."""
    told = json.loads(run(smap, "--trace", trace, "--at", 30, "--test-only",
                          "-g 2x2x1 --conn-type=TTM --node-use=VIRTUAL", "--json"))  # fmt: skip
    blocks = [(one["name"], one["connection"], one["node_use"], one["size"]) for one in told["blocks"]]
    assert blocks == [("RMP1", "torus", "", 64), ("RMP2", "torus", "", 16), ("RMP4", "ttm", "virtual", 4)]
    assert [job["block"] for job in told["jobs"]] == ["RMP1", "RMP2", "", "RMP4"]
    printed = run(smap, "--trace", trace, "--at", 30, "--test-only", "-g 2x2x1", "-D", "b")
    assert "D  bgl       RMP4 " in printed  # the letter of its job on the map, though it is the third block
    assert "A bgl RMP1 BUSY - TORUS - 64 bgl[000x333]" in " ".join(printed.split())


def test_reservations_of_a_trace_are_listed_until_they_end_and_on_the_map_while_they_last(tmp_path):
    log, trace = tmp_path / "one.swf", tmp_path / "reserved.jsonl"
    log.write_text("; MaxProcs: 512\n1 0 -1 50 16 -1 -1 16 60 -1 1 5 1 1 1 1 -1 -1\n")
    ran = CliRunner().invoke(
        simulate,
        ["--machine", "bgl", "--log", str(log), "--scheduler", "easy", "--trace", str(trace),
         "--reservation", "100:200:8x4x4", "--reservation", "100:200:8x4x4", "--reservation", "150:300:4x4x4"],
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output

    def at(second):
        told = json.loads(run(smap, "--trace", trace, "--at", second, "--json"))
        listed = [
            (one["name"], one["state"], one["start_s"], one["end_s"], one["size"]) for one in told["reservations"]
        ]
        return listed, [(job["name"], job["state"], job["size"]) for job in told["jobs"]]

    whole = ("reservation1", "INACTIVE", 100, 200, 128)  # of the other two neither has room beside it
    assert at(10) == ([whole], [("", "R", 16)])
    assert at(150) == ([("reservation1", "ACTIVE", 100, 200, 128)], [("reservation1", "RV", 128)])
    assert at(200) == ([], [])
    assert "A  reservation1 ACTIVE" in run(smap, "--trace", trace, "--at", 150, "-D", "r")


@pytest.mark.parametrize("option", ["--at", "--step", "-i"])
def test_a_moment_is_a_number(trace, option):
    result = CliRunner().invoke(smap, ["--trace", str(trace), option, "nan"])
    assert result.exit_code == 2


@pytest.mark.slow
def test_pictures_are_written(trace, tmp_path):
    svg, png = tmp_path / "m.svg", tmp_path / "m.png"
    run(smap, "--trace", trace, "--at", 30, "--svg", svg, "--png", png)
    assert png.read_bytes().startswith(b"\x89PNG")
    first = svg.read_text()
    assert first.count("<path") > 128 * 3
    run(smap, "--trace", trace, "--at", 30, "--svg", svg)
    assert svg.read_text() == first  # equal states give equal files
    run(smap, "--trace", trace, "--at", 0, "--svg", svg)
    assert svg.read_text().count("<path") < first.count("<path") - 2 * (16 * 4)  # without cables and letters
    with pytest.raises(MachineError, match="flat machine has no coordinates"):
        run(smap, "flat:16", "--svg", svg)


@pytest.mark.slow
def test_the_legend_stands_by_the_map_and_no_cable_covers_a_letter(trace, tmp_path):
    """Half of the picture once was empty, and letters lay under the cables of other jobs."""
    png = tmp_path / "m.png"
    run(smap, "--trace", trace, "--at", 30, "--png", png)
    white = (matplotlib.image.imread(png)[..., :3] > 0.98).all(axis=2).all(axis=0)
    gaps = [len(list(run)) for empty, run in itertools.groupby(white.tolist()) if empty]
    assert max(gaps) < 0.1 * len(white)
    machine = load_machine("bgl")
    rows = enumerate(map(json.loads, trace.read_text().splitlines()[1:]), start=2)
    figure = machine_figure(view_of_trace(machine, rows, 30, "trace"), machine.wirings)
    axes = figure.axes[0]
    letters = [text for text in axes.texts if text.get_text() in {"A", "B"}]
    assert letters
    for letter in letters:
        spot = axes.transData.transform(letter.get_position())
        over = max((patch for patch in axes.patches if patch.contains_point(spot)), key=lambda patch: patch.zorder)
        cables = max(patch.zorder for patch in axes.patches if isinstance(patch, PathPatch))
        assert isinstance(over, Circle)
        assert cables < over.zorder < letter.zorder


def test_a_flat_machine_is_a_row_of_processors(tmp_path):
    path = tmp_path / "state.json"
    jobs = [{"job_number": 1, "nodes": "3"}, {"job_number": 2, "nodes": "66"}]
    path.write_text(json.dumps({"jobs": jobs}))
    lines = json.loads(run(smap, "flat:100", "--state", path, "--json"))["map"]
    assert lines == [" ".join("AAA" + "B" * 61), " ".join("BBBBB" + "." * 31)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "expected a JSON object"),
        ('{"jobs": [{"nodes": "bgl000"}]}', r"jobs\[0\]: field 'job_number' is missing"),
        ('{"jobs": [{"job_number": 1, "nodes": "bgl900"}]}', r"jobs\[0\]: coordinates \[9, 0, 0\] are outside"),
        ('{"jobs": [{"job_number": 1, "nodes": "bgl0"}]}', r"jobs\[0\]: host list: invalid name bgl0; expected 'bgl'"),
        ('{"jobs": [{"job_number": 1, "nodes": "bgl000"}, {"job_number": 2, "nodes": "bgl[000x011]"}]}',
         r"jobs\[1\]: jobs 1 and 2 hold the same units"),
        ('{"reservations": [{"name": "r", "nodes": "bgl000", "start_s": "soon", "end_s": 2}]}', r"reservations\[0\]"),
        ('{"down": "bgl0"}', "down: host list"),
        ('{"job": []}', "job: unknown key; expected one of blocks, down"),
        ('{"time_s": "noon"}', "time_s: could not convert"),
        ('{"jobs": [{"job_number": 1, "nodes": "bgl000", "elapsed_s": Infinity}]}', "number of seconds, got inf"),
        ('{"jobs": [7]}', r"jobs\[0\]"),
    ],
)  # fmt: skip
def test_a_wrong_state_is_refused_with_its_place(tmp_path, text, message):
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(DocumentError, match=message):
        run(smap, "--state", path)


def test_a_wrong_trace_is_refused_with_its_line(tmp_path):
    path = tmp_path / "trace.jsonl"
    header = '{"trace": 1, "machine": "bgl", "extents": [8, 4, 4]}\n'
    path.write_text(header + '\n{"job_number": 1}\n')
    with pytest.raises(DocumentError, match=r"trace\.jsonl: line 3: field 'submit_time' is missing"):
        run(smap, "--trace", path)
    for wrong, match in (
        ("{\n", "line 1: not JSON"),
        ('{"job_number": 1}\n', "line 1: not a trace"),
        (header.replace("1,", "2,"), "line 1: not a trace"),
        (header.replace("8, 4, 4", "8, 4"), r"line 1: not of bgl \(8x4x4\), but of bgl"),
        (header.replace("}", ', "down": "bgl9"}'), "line 1: host list"),
        (header.replace('"bgl"', '"./bgl.toml"'), "line 1: got the machine './bgl.toml', a file"),
        (header + "[]", "line 2: expected a JSON object"),
    ):
        path.write_text(wrong)
        with pytest.raises(DocumentError, match=match):
            run(smap, "--trace", path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DocumentError, match="not UTF-8 text"):
        run(smap, "--trace", path)
    with pytest.raises(DocumentError, match=r"nothing\.jsonl: file of the trace not found; .*--trace FILE"):
        run(smap, "--trace", tmp_path / "nothing.jsonl")


def test_options_that_exclude_each_other(tmp_path):
    for arguments in (["--state", "a", "--trace", "b"], ["-c", "-i", "1"]):
        assert CliRunner().invoke(smap, arguments).exit_code == 2


def test_hostlist_commands():
    assert run(hostlist, "bgl[012x013]", "linux[0-1]") == "bgl012\nbgl013\nlinux0\nlinux1\n"
    assert json.loads(run(hostlist, "bgl[000x733]", "--json"))[-1] == "bgl733"
    assert run(hostlist, "--count", "bgl[000xC44]") == "325\n"
    assert run(hostlist, "--compress", "bgl000", "bgl001", "bgl[010x011]") == "bgl[000x011]\n"
    assert json.loads(run(hostlist, "--compress", "--json", "bgl000,bgl000,bgl001")) == {
        "hostlist": "bgl[000x001]", "count": 2,
    }  # fmt: skip
    assert run(hostlist, "--compress", input="n0000\nn0001\n") == "n[0000-0001]\n"
    assert run(hostlist, "--compress", "--dimensions", 4, input="n0000\nn0001\n") == "n[0000x0001]\n"
    assert run(hostlist, "--compress", "--dimensions", 1, "n100", "n101") == "n[100-101]\n"


def test_the_link_sets_of_figure_5_and_the_cables_of_a_place():
    """Aridor and others 2005, figure 5: midplanes 1, 2, 3 of an x-line; and figure 3's torus {0,1,2}, through 3."""
    lines = run(hostlist, "bgl[100x300]", "--cables", "bgl").splitlines()
    assert lines[0].startswith("x  {1,2,3}  MESH   {3,6} {1,2,3} ")
    assert lines[1].startswith("x  {1,2,3}  TORUS  {1,2,3,6} ")
    printed = run(smap, "bgl", "--test-only", "-g 3x2x1 -R --conn-type=TORUS", "--cables").splitlines()[-3:]
    assert printed == [
        "x  {0,1,2}  TORUS  1:2.2>0.5 2:0.2>1.5 3:1.2>3.5 6:3.4>2.3  way 0>1>(3)>2>0  on 2 x-lines",
        "y  {0,1}  TORUS  0:0.2>1.5 1:1.2>3.5 2:3.2>2.5 3:2.2>0.5  way 0>1>(3)>(2)>0  on 3 y-lines",
        "z  {0}  TORUS  no cables  way 0  on 6 z-lines",
    ]
    with pytest.raises(MachineError, match=r"expected a box of midplanes, got bgl\[000,011\]"):
        run(hostlist, "bgl000,bgl011", "--cables", "bgl")
