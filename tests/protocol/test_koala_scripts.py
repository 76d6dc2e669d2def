"""Changes of size between KOALA's manager and applications, as text scripts with transcripts under koala_scripts/.

A script says what there is and what happens, then `----`, then what came of it, word by word. The checks of
`tests.unit.koala.invariants` are made after every event. `pytest tests/protocol --rewrite` writes the transcripts anew;
read them against sections 2, 4 and 5 of the paper before they are kept. The commands of a script:

    cluster NAME PROCESSORS threshold=0 local=0
    koala PRA|PWA POLICY poll=1 stub=0 release=0 placement=WF    seconds; the policy `greedy` is a broken one that
                                         offers 100 processors to every job, whatever is idle
    job NUMBER at=0 work=100 sizes=2..8 powers pause=0 components=3,3
                                         work in processor-seconds, ideal speed-up; it begins with the sum of its
                                         components, by default its smallest size; `sizes=5`: rigid
    crash NUMBER at=SECONDS              only where it runs then
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ramp.errors import InvariantViolated
from simulation.koala.clusters import Cluster, Kind
from simulation.koala.jobs import Component, KoalaJob
from simulation.koala.policy import Message
from simulation.koala.runner import TRANSITIONS, Change, Latencies, Runner, Stimulus
from simulation.koala.scheduler import Koala, KoalaOptions
from simulation.koala.size_policies.none import NoChange
from simulation.malleable.malleability import AmdahlLaw, Malleability, Sizes
from tests.unit.koala.invariants import check

FOLDER = Path(__file__).parent / "koala_scripts"
RULE = "----\n"
S = 1_000_000


class Greedy(NoChange):
    """Offers what nobody has."""

    def grow(self, jobs: Sequence[Any], value: int) -> Iterator[Message]:
        for job in jobs:
            yield Message(job.number, 100)


@dataclass
class World:
    """What a script describes."""

    clusters: list[Cluster] = field(default_factory=list)
    jobs: list[KoalaJob] = field(default_factory=list)
    crashes: list[tuple[int, int]] = field(default_factory=list)
    options: KoalaOptions = field(default_factory=lambda: KoalaOptions("PWA", "FPSMA"))

    def command(self, line: str) -> None:
        verb, first, *words = line.split()
        given = {key: value or key for key, _, value in (word.partition("=") for word in words)}
        if verb == "cluster":
            size, *_ = words
            threshold, local = int(given.get("threshold", 0)), int(given.get("local", 0))
            self.clusters.append(Cluster(first, int(size), threshold=threshold, local=local))
        elif verb == "koala":
            latencies = Latencies(int(given.get("stub", 0)) * S, int(given.get("release", 0)) * S)
            placement, poll = given.get("placement", "WF"), int(given.get("poll", 1)) * S
            sizes = Greedy() if words[0] == "greedy" else words[0]
            self.options = KoalaOptions(first, sizes, placement, poll, latencies=latencies)
        elif verb == "job":
            self.jobs.append(job_of(int(first), given))
        else:
            assert verb == "crash", line
            self.crashes.append((int(given["at"]) * S, int(first)))


def job_of(number: int, given: dict[str, str]) -> KoalaJob:
    least, _, most = given["sizes"].partition("..")
    parts = tuple(Component(int(part)) for part in given.get("components", least).split(","))
    begins = sum(part.processors for part in parts)
    sizes = Sizes(int(least), begins, int(most or least), "powers" in given)
    how = Malleability(sizes, AmdahlLaw(0, 1), int(given.get("pause", 0)) * S)
    run_time = int(given.get("work", 100)) * S // begins
    at = int(given.get("at", 0)) * S
    return KoalaJob(number, at, "test", run_time, begins, how, parts)


class Transcript:
    """What happened, in lines: events that changed something, with the steps of changes and who holds what."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines: list[str] = []
        self._steps: list[str] = []
        self._sent = 0
        self._holdings = ""
        self._koala = Koala(world.clusters, world.jobs, world.options, crashes=world.crashes)
        self._koala.watch = self._event
        plain = Change.step

        def step(change: Change, stimulus: Stimulus) -> None:
            before = change.state
            plain(change, stimulus)
            self._steps.append(f"  job {change.job} in {change.cluster}: {before} -> {change.state}")

        monkeypatch.setattr(Change, "step", step)

    def play(self) -> list[str]:
        """Let everything happen, or as much as an invariant lets."""
        try:
            self._koala.run()
        except InvariantViolated as violated:
            self.lines += [*self._steps, f"{self._koala.now / S:g} s: {violated}"]
        return self.lines

    def _event(self, kind: Kind, subject: Any) -> None:
        check(self._koala)
        sent = self._koala.manager.sent[self._sent :]
        self._sent += len(sent)
        for each in sent:
            verb = "offered" if each.processors > 0 else "asked for"
            words = f"  job {each.job} in {each.cluster} was {verb} {abs(each.processors)}, accepted {each.accepted}"
            self._steps.append(words)
        holdings = self._who_holds()
        if self._steps or holdings != self._holdings:
            self.lines.append(f"{self._koala.now / S:g} s {kind.name.lower().replace('_', ' ')}{_whose(subject)}")
            self.lines += self._steps
        if holdings != self._holdings:
            self.lines.append(f"  {holdings}")
        self._steps, self._holdings = [], holdings

    def _who_holds(self) -> str:
        """Of each cluster; with how many a job computes where it holds more."""
        told = []
        for name, cluster in self._koala.clusters.items():
            jobs = ", ".join(f"job {number} {held}" for number, held in cluster.held.items())
            told.append(f"{name}: {jobs or 'nobody'}, {cluster.idle} idle")
        computing = [
            f"job {number} computes with {one.size}" if one.computing else f"job {number} stands still"
            for number, one in self._koala.runners.items()
        ]
        return "; ".join((*told, *computing))


def _whose(subject: Any) -> str:
    if isinstance(subject, Runner):
        return f" of job {subject.number}"
    number = subject if isinstance(subject, int) else getattr(getattr(subject, "job", None), "number", None)
    return "" if number is None else f" of job {number}"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    script, _, expected = path.read_text().partition(RULE)
    world = World()
    for line in script.splitlines():
        if line and not line.startswith("#"):
            world.command(line)
    told = "".join(f"{line}\n" for line in Transcript(world, monkeypatch).play())
    if request.config.getoption("--rewrite", default=False):
        path.write_text(script + RULE + told)
        return
    assert told == expected


def test_every_step_of_the_table_is_in_a_transcript() -> None:
    told = "".join(path.read_text() for path in FOLDER.glob("*.txt"))
    taken = set(re.findall(r" in \w+: (\w+) -> (\w+)\n", told))
    assert {(before, after) for (before, _), after in TRANSITIONS.items()} == taken
