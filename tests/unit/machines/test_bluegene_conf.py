"""Blocks listed in bluegene.conf: what is refused, which block a job gets, and EASY's starts against brute force."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import simulation
from ramp.errors import ConfigurationError
from simulation.machine_files import load_machine
from simulation.machines.interface import Connection, JobRequest, Machine

RINGS = "".join(f'[[dimension]]\nname = "{name}"\nring = [0, 1, 3, 2]\n' for name in "xy")


def machine_of(path: Path, conf: str) -> Machine:
    """A torus of 4x4 midplanes."""
    (path / "b.conf").write_text(conf)
    (path / "m.toml").write_text(
        f'name = "small"\nkind = "cabled-torus"\nprefix = "b"\nbluegene_conf = "b.conf"\n{RINGS}'
    )
    return load_machine(path / "m.toml")


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
    assert shaped is not None
    assert shaped.size == 4
    whole = machine.place(JobRequest(5, 2, connection=Connection.TORUS))
    assert whole is not None
    assert whole.size == 16


BLOCKS = {"[00x11]": 4, "[10x21]": 4, "[22x33]": 4, "[00x01]": 2, "33": 1, "[00x33]": 16}


def cells(text: str) -> set[str]:
    low, _, high = text.strip("[]").partition("x")
    ends = list(zip(low, high or low, strict=True))
    return {f"{x}{y}" for x in range(int(ends[0][0]), int(ends[0][1]) + 1)
            for y in range(int(ends[1][0]), int(ends[1][1]) + 1)}  # fmt: skip


def easy(jobs: list[tuple[int, int, int, int]]) -> dict[int, tuple[int, str]]:
    """Starts and blocks by EASY, second by second, of blocks of one cable-free kind that exclude by midplanes."""
    order = sorted(BLOCKS, key=lambda block: BLOCKS[block])
    running: dict[int, tuple[int, int, str]] = {}  # real end, expected end, block
    waiting: list[int] = []
    started: dict[int, tuple[int, str]] = {}

    def free(size: int, held: list[str]) -> str | None:
        taken = set().union(*map(cells, held)) if held else set()
        return next((each for each in order if BLOCKS[each] >= size and not cells(each) & taken), None)

    for now in range(5000):
        running = {number: each for number, each in running.items() if each[0] > now}
        waiting += [number for number, job in enumerate(jobs, 1) if job[0] == now]
        while waiting:
            begun = None
            promise: tuple[int, str] | None = None
            for place, number in enumerate(waiting):
                _, run, size, asked = jobs[number - 1]
                held = [block for *_, block in running.values()]
                late = promise is not None and now + asked > promise[0]
                block = free(size, held + ([promise[1]] if promise and late else []))
                if block is not None:
                    running[number] = (now + run, now + asked, block)
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
    return started


@pytest.mark.parametrize("seed", range(6))
def test_easy_starts_as_brute_force_does(tmp_path: Path, seed: int) -> None:
    # those of these meshes that share no midplane share no cable either, so the reference needs midplanes only
    lines = "".join(f"BPs={block} Type=MESH\n" for block in BLOCKS)
    machine = machine_of(tmp_path, f"LayoutMode=OVERLAP\n{lines}")
    draw = random.Random(seed)
    jobs, submit = [], 0
    for _ in range(40):
        submit += draw.randrange(12)
        run = draw.randint(5, 60)
        jobs.append((submit, run, draw.choice([1, 1, 2, 2, 3, 4, 4, 7]), run + draw.randrange(30)))
    rows = [f"{n} {s} -1 {r} {m} -1 -1 {m} {q} -1 1 5 1 1 1 1 -1 -1" for n, (s, r, m, q) in enumerate(jobs, 1)]
    (tmp_path / "log.swf").write_text("; MaxProcs: 16\n" + "\n".join(rows) + "\n")
    run_ = simulation.simulate(tmp_path / "log.swf", machine=machine, scheduler="easy")
    got = {line["job_number"]: (line["start_time"], line["nodes"]) for line in run_.trace if "job_number" in line}
    expected = {n: (start, f"b{block}") for n, (start, block) in easy(jobs).items()}
    assert {n: (start, cells(nodes.removeprefix("b"))) for n, (start, nodes) in got.items()} == {
        n: (start, cells(block.removeprefix("b"))) for n, (start, block) in expected.items()
    }
