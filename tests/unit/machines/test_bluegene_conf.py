"""Blocks listed in bluegene.conf: what is refused, which block a job gets, and EASY's starts against brute force."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import simulation
from ramp.errors import ConfigurationError, MachineError
from simulation.machine_files import load_machine
from simulation.machines.interface import Connection, JobRequest, Machine
from tests.queue_runs import write_log

RINGS = "".join(f'[[dimension]]\nname = "{name}"\nring = [0, 1, 3, 2]\n' for name in "xy")


def listed_blocks(folder: Path, conf: str, more: str = "", dimensions: str = RINGS) -> Path:
    """Write the files of a torus of 4x4 midplanes whose blocks are listed."""
    (folder / "b.conf").write_text(conf)
    path = folder / "m.toml"
    path.write_text(
        f'name = "small"\nkind = "cabled-torus"\nprefix = "b"\nbluegene_conf = "b.conf"\n{more}{dimensions}'
    )
    return path


def machine_of(path: Path, conf: str, more: str = "", dimensions: str = RINGS, **options: Any) -> Machine:
    return load_machine(listed_blocks(path, conf, more, dimensions), **options)


@pytest.mark.parametrize(
    ("conf", "match"),
    [
        ("BPs=[00x11]\nBPs=[11x22]", r"b.conf: line 2: got \[11x22\], which overlaps an earlier block; expected other"),
        ("BPs=[00x30] Type=TORUS\nBPs=b[01x11]\nBPs=b[21x31]", "line 3: .*TORUS, for which no cables are left"),
        ("LayoutMode=SOME", "line 1: LayoutMode: got 'SOME', expected STATIC, OVERLAP, DYNAMIC"),
        ("# a\nBasePartitionNodeCnt=32", "line 2: basepartitionnodecnt: got '32', expected 512"),
        ("BPs=b00 Type=SMALL 32CNBlocks=4", "line 1: Type: got 'SMALL', expected TORUS or MESH"),
        ("BPs=b44", "line 1: .*; expected midplanes of the machine"),
        ("BPs=b[00,11]", "line 1: .*expected one box of midplanes"),
        ("Layout", "line 1: got 'Layout', expected KEY=VALUE"),
        ("Colour=red", "line 1: got the key 'colour', expected LayoutMode"),
    ],
)
def test_a_line_that_cannot_be_used_is_refused(tmp_path: Path, conf: str, match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        machine_of(tmp_path, conf)


def test_no_allocator_chooses_among_listed_blocks(tmp_path: Path) -> None:
    for options in ({"allocator": "two-phase"}, {"allocator_options": {"merit": "fragmentation"}}):
        with pytest.raises(ConfigurationError, match=r"b\.conf lists the blocks of jobs; remove the allocator"):
            machine_of(tmp_path, "BPs=00", **options)
    with pytest.raises(ConfigurationError, match=r"allocator: b\.conf lists"):
        machine_of(tmp_path, "BPs=00", 'allocator_options = { merit = "corner" }\n')
    assert machine_of(tmp_path, "LayoutMode=DYNAMIC", allocator="two-phase").place(JobRequest(1, 2))


def test_the_whole_machine_is_a_mesh_where_no_cables_close_a_torus(tmp_path: Path) -> None:
    line = '[[dimension]]\nname = "x"\nwidth = 2\ncables = ["0.2>1.5"]\n'
    machine = machine_of(tmp_path, "BPs=0\nBPs=1", dimensions=line)
    whole = machine.place(JobRequest(1, 2, connection=Connection.NAV))
    assert whole.connection == (Connection.MESH,)


def test_a_request_of_other_dimensions_is_refused_as_without_a_list(tmp_path: Path) -> None:
    machine = machine_of(tmp_path, "BPs=[00x11]")
    with pytest.raises(MachineError, match="shape 1x2x1 has 3 extents, the machine 2"):
        machine.place(JobRequest(1, 2, (1, 2, 1)))
    with pytest.raises(MachineError, match="got 3 connections, expected 1 or 2"):
        machine.place(JobRequest(1, 2, connection=(Connection.TORUS,) * 3))
    # one connection a dimension: a block has the same in all
    torus, nav, mesh = Connection.TORUS, Connection.NAV, Connection.MESH
    assert machine.place(JobRequest(1, 2, connection=(torus, nav)))
    assert machine.place(JobRequest(1, 2, connection=(torus, mesh))) is None


def test_a_job_gets_the_smallest_free_block_that_fits(tmp_path: Path) -> None:
    machine = machine_of(tmp_path, "NumPsets=8 # x\nlayoutmode=Static\nBPs=[00x11] Type=MESH\nBPs=b22 Type=TORUS\n")
    asked = [JobRequest(1, 1, connection=Connection.NAV), JobRequest(2, 1, connection=Connection.NAV),
             JobRequest(3, 1, connection=Connection.NAV)]  # fmt: skip
    sizes = []
    for request in asked:
        place = machine.place(request)
        sizes.append(place and place.size)
        if place:
            machine.allocate(place)
    assert sizes == [1, 4, None]
    for job in (1, 2):
        machine.release(job)
    shaped = machine.place(JobRequest(4, 2, (1, 2), connection=Connection.MESH))
    assert shaped.size == 4
    # 3x1 midplanes are no part of 2x2, turned or not
    assert machine.place(JobRequest(4, 3, (3, 1), connection=Connection.MESH)) is None
    assert machine_of(tmp_path, "BPs=[00x30] Type=MESH").place(JobRequest(4, 3, (1, 3), connection=Connection.MESH))
    assert not machine_of(tmp_path, "BPs=[00x30] Type=MESH").place(
        JobRequest(4, 3, (1, 3), rotate=False, connection=Connection.MESH)
    )
    whole = machine.place(JobRequest(5, 2, connection=Connection.TORUS))
    assert whole.size == 16


BLOCKS = {"[00x11]": 4, "[10x21]": 4, "[22x33]": 4, "[00x01]": 2, "33": 1, "[00x33]": 16}
TORI = {"[00x10]": 2, "[20x30]": 2, "[01x02]": 2, "[11x12]": 2, "03": 1, "[13x33]": 3, "[21x32]": 4, "[00x33]": 16}


FREEING, CONFIGURING = 7, 3
TIMES = f"""deallocate_s = {FREEING}
configure_s = {CONFIGURING}
boot = [{{ midplanes = 1, seconds = 5 }}, {{ midplanes = 4, seconds = 11 }}, {{ midplanes = 16, seconds = 20 }}]
"""


def boot_s(size: int) -> int:
    return 5 if size == 1 else 11 if size <= 4 else 20


def cells(text: str) -> set[str]:
    low, _, high = text.strip("[]").partition("x")
    ends = list(zip(low, high or low, strict=True))
    return {f"{x}{y}" for x in range(int(ends[0][0]), int(ends[0][1]) + 1)
            for y in range(int(ends[1][0]), int(ends[1][1]) + 1)}  # fmt: skip


def parts(block: str, kind: str) -> set[str]:
    """Midplanes of a block; a torus of more than one in a ring takes all cables of each of its lines there."""
    found = cells(block)
    for axis, name in enumerate("xy" if kind == "TORUS" else ""):
        if len({cell[axis] for cell in found if cell.isdigit()}) > 1:
            found |= {f"{name}-line {cell[1 - axis]}" for cell in found if cell.isdigit()}
    return found


class Blocks:
    """Which blocks are booted, and which are being freed since when."""

    def __init__(self, sizes: Mapping[str, int], kind: str, boots: bool) -> None:
        self.sizes, self.kind, self.boots = sizes, kind, boots
        self.booted: set[str] = set()
        self.freed: dict[str, int] = {}

    def startup(self, block: str, now: int) -> int:
        if not self.boots or block in self.booted:
            return 0
        mine = parts(block, self.kind)
        rivals = {each for each in self.sizes if each != block and parts(each, self.kind) & mine}
        self.freed |= dict.fromkeys(self.booted & rivals, now)
        self.booted = self.booted - rivals | {block}
        left = [self.freed[each] + FREEING - now for each in rivals & self.freed.keys()]
        return max([0, *left]) + CONFIGURING + boot_s(self.sizes[block])


def easy(
    jobs: list[tuple[int, int, int, int]], sizes: Mapping[str, int], kind: str, boots: bool
) -> tuple[dict[int, tuple[int, str]], bool]:
    """Starts and blocks by EASY, second by second; whether cables alone ever kept a block from a job."""
    order = sorted(sizes, key=lambda block: sizes[block])
    by_cables = False
    running: dict[int, tuple[int, int, str]] = {}  # real end, expected end, block
    waiting: list[int] = []
    started: dict[int, tuple[int, str]] = {}
    blocks = Blocks(sizes, kind, boots)
    longest = FREEING + CONFIGURING + boot_s(16) if boots else 0

    def free(size: int, held: list[str]) -> str | None:
        nonlocal by_cables
        taken: set[str] = set().union(*(parts(each, kind) for each in held))
        for each in order:
            if sizes[each] >= size:
                if not parts(each, kind) & taken:
                    return each
                by_cables = by_cables or not cells(each) & taken
        return None

    for now in range(5000):
        running = {number: each for number, each in running.items() if each[0] > now}
        waiting += [number for number, job in enumerate(jobs, 1) if job[0] == now]
        while waiting:
            begun = None
            promise: tuple[int, str] | None = None
            for place, number in enumerate(waiting):
                _, run, size, asked = jobs[number - 1]
                held = [block for *_, block in running.values()]
                late = promise is not None and now + longest + asked > promise[0]
                block = free(size, held + ([promise[1]] if promise and late else []))
                if block is not None:
                    ready = now + blocks.startup(block, now)
                    running[number] = (ready + run, ready + asked, block)
                    started[number] = (now, block)
                    begun = number
                    break
                if place == 0:
                    for shadow in sorted({end for _, end, _ in running.values()}):
                        left = [block for _, end, block in running.values() if end > shadow]
                        if (found := free(size, left)) is not None:
                            promise = (shadow, found)
                            break
            if begun is None:
                break
            waiting.remove(begun)
    return started, by_cables


@pytest.mark.parametrize("boots", [False, True], ids=["at once", "boots"])
@pytest.mark.parametrize(("kind", "sizes"), [("MESH", BLOCKS), ("TORUS", TORI)], ids=["mesh", "torus"])
@pytest.mark.parametrize("seed", range(6))
def test_easy_starts_as_brute_force_does(
    tmp_path: Path, seed: int, kind: str, sizes: Mapping[str, int], boots: bool
) -> None:
    # those of these meshes that share no midplane share no cable either; many of the tori share only cables
    lines = "".join(f"BPs={block} Type={kind}\n" for block in sizes)
    machine = machine_of(tmp_path, f"LayoutMode=OVERLAP\n{lines}", TIMES if boots else "")
    draw = random.Random(seed)
    jobs, submit = [], 0
    for _ in range(40):
        submit += draw.randrange(12)
        run = draw.randint(5, 60)
        jobs.append((submit, run, draw.choice([1, 1, 2, 2, 3, 4, 4, 7]), run + draw.randrange(30)))
    run_ = simulation.simulate(write_log(tmp_path / "log.swf", *jobs), machine=machine, scheduler="easy")
    got = {line["job_number"]: (line["start_time"], line["nodes"]) for line in run_.trace if "job_number" in line}
    starts, by_cables = easy(jobs, sizes, kind, boots)
    assert by_cables == (kind == "TORUS")
    expected = {n: (start, f"b{block}") for n, (start, block) in starts.items()}
    assert {n: (start, cells(nodes.removeprefix("b"))) for n, (start, nodes) in got.items()} == {
        n: (start, cells(block.removeprefix("b"))) for n, (start, block) in expected.items()
    }
