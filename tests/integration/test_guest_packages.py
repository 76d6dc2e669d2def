"""Schedulers, allocators, kinds of machines and experiments of other packages, good ones and broken ones."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import simulation
from ramp.errors import ConfigurationError
from ramp.model.instant import HOUR, from_iso
from ramp.model.offer import Refusal
from ramp.model.request import RequestUnit, TotalCores
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import open_plugin
from ramp.shipped_files import shipped_directory
from simulation.cli.plugins import plugins
from simulation.cli.simulate import simulate
from simulation.experiments.discovery import all_experiments, find_experiment
from simulation.schedulers.declaration import SCHEDULERS
from tests.packages import install

pytestmark = pytest.mark.loops

NOW = from_iso("2026-03-02T08:00:00Z")
GUEST = '''
from dataclasses import dataclass
from simulation import BoxPolicy, machine_kind
from simulation.experiments.study import Study
from simulation.machines.flat import FlatMachine

class InOrder:
    """First come, first served, written anew."""

    def __init__(self):
        self.queue = []

    def submit(self, job):
        self.queue.append(job)

    def released(self):
        pass

    def waiting(self):
        return list(self.queue)

    def decide(self, site):
        while self.queue and (placement := site.place(self.queue[0])) is not None:
            site.start(self.queue.pop(0), placement)

class AsIs(BoxPolicy):
    """The default ranks."""

@dataclass
class Description:
    name: str

KIND = machine_kind(Description, lambda description, options: FlatMachine(48, description.name), about="48 processors")
STUDY = Study(name="guest-study", about="nothing", cases=lambda run: [], measure=len, columns={})
NO_SCHEDULER = 7
'''
ENTRIES = """
[ramp.schedulers]
in-order = guest_policies:InOrder
broken = guest_broken:Scheduler
wrong = guest_policies:NO_SCHEDULER
easy = guest_policies:InOrder
[ramp.allocators]
as-is = guest_policies:AsIs
[ramp.machines]
forty-eight = guest_policies:KIND
[ramp.experiments]
guest-study = guest_policies:STUDY
broken-study = guest_broken:STUDY
"""


@pytest.fixture(autouse=True)
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package beside the project, as pip would have left it."""
    (tmp_path / "guest_policies.py").write_text(GUEST)
    (tmp_path / "guest_broken.py").write_text("raise RuntimeError('no such luck')\n")
    install(tmp_path, "guest-policies", ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("guest_policies", "guest_broken"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("machine", "further"),
    [("flat:64", {}), ("bgl-half", {"shape": "fat", "torus_probability": 0.5}), ("angara-4x4x2", {})],
)
def test_a_guests_scheduler_decides_like_ours_where_the_rule_is_the_same(machine: str, further: dict) -> None:
    """First come, first served, on every sort of machine; on the flat one ours is the compiled loop."""
    theirs = simulation.simulate("synthetic", machine=machine, scheduler="in-order", max_jobs=150, **further)
    ours = simulation.simulate("synthetic", machine=machine, scheduler="fcfs", max_jobs=150, **further)
    assert theirs.jobs.tolist() == ours.jobs.tolist()
    assert theirs.metrics.mean_wait_s > 0


def test_guests_work_by_name_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\nkind = "forty-eight"\n')
    for options in (
        ["--machine", str(path), "--scheduler", "in-order"],
        ["--machine", "angara-4x4x2", "--scheduler", "in-order", "--allocator", "as-is"],
    ):
        arguments = [*options, "--log", "synthetic", "--max-jobs", "20", "--json"]
        result = CliRunner().invoke(simulate, arguments, catch_exceptions=False)
        assert json.loads(result.stdout)["jobs"] == 20


@pytest.mark.parametrize(("machine", "cores"), [("bgl", 1024), ("angara-4x4x2", 16)])
def test_a_guests_scheduler_runs_a_live_machine_of_a_market(tmp_path: Path, machine: str, cores: int) -> None:
    text = (shipped_directory("agents_config/swarms") / "torus.toml").read_text("utf-8")
    text = text.replace("load = 0.6", 'load = 0.6, scheduler = "in-order"').replace(
        "base_time_s = 432000", "base_time_s = 7200"
    )
    path = tmp_path / "torus.toml"
    path.write_text(text)
    config = load_config(path)
    resource = next(one for one in config.resources if one.options["machine"] == machine)
    plugin = open_plugin(resource, NOW, None)
    assert type(plugin.live.queue._scheduler).__name__ == "InOrder"
    plugin.advance(NOW + HOUR)
    quoted = plugin.quote(RequestUnit(1, NOW + HOUR, NOW + 2000 * HOUR, TotalCores(cores)), NOW + HOUR)
    assert not isinstance(quoted, Refusal)


def test_what_is_broken_is_told_where_it_is_used_and_listed() -> None:
    for name, words in (
        (
            "broken",
            r"scheduler: broken of guest_broken:Scheduler \(guest-policies\) cannot be loaded: RuntimeError: no such",
        ),
        ("wrong", r"wrong of guest_policies:NO_SCHEDULER .*: a scheduler must be a class or function that makes one"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            simulation.simulate("synthetic", machine="flat:64", scheduler=name)
    result = CliRunner().invoke(
        plugins, ["list", "scheduler", "allocator", "machine", "--json"], catch_exceptions=False
    )
    listed = {(one["sort"], one["name"], bool(one["error"])): one for one in json.loads(result.stdout)}
    assert "RuntimeError: no such luck" in listed["scheduler", "broken", True]["error"]
    assert "must be a class" in listed["scheduler", "wrong", True]["error"]
    assert "hidden by the scheduler of the same name" in listed["scheduler", "easy", True]["error"]
    assert listed["scheduler", "easy", False]["about"].startswith("Later jobs")
    assert listed["scheduler", "in-order", False]["about"] == "First come, first served, written anew."
    assert listed["allocator", "as-is", False]
    assert listed["machine", "forty-eight", False]["options"][0]["name"] == "name"
    assert SCHEDULERS.find("easy").make.__name__ == "EasyBackfill"


def test_experiments_come_from_packages_as_well() -> None:
    assert find_experiment("guest-study").about == "nothing"
    assert "guest-study" in all_experiments()
    assert "broken-study" not in all_experiments()
    with pytest.raises(ConfigurationError, match=r"broken-study of guest_broken:STUDY .* no such luck"):
        find_experiment("broken-study")
