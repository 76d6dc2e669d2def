"""Every plug-in that comes with RAMP keeps the contract, and the contract finds the plug-ins that do not.

A plug-in joins by an entry in `MACHINES`: what opens it, with options that leave some cores free at `NOW`.
"""

import runpy
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ramp.batch.waiting import plugin as waiting_plugin
from ramp.errors import PluginError
from ramp.model.instant import MINUTE, from_iso
from ramp.model.request import RequestUnit
from ramp.model.slot import Reservation
from ramp.plugins.contract import RULES, Rule, Subject, Verdict, check_plugin, resizing
from ramp.plugins.contract.checking import trials_of
from ramp.plugins.interface import PluginSettings, ResourcePlugin, Slot
from simulation.resource import fake_qstat, modelled, steady
from simulation.resource.steady import SteadyMachine
from simulation.workload.swf import write_swf
from tests.queue_runs import ASKED, RUN, SIZE, SUBMIT, log_of

NOW = from_iso("2026-11-21T08:00:00Z")
CORES = 64

Open = Callable[[PluginSettings], Any]

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_plugin.py"


def _log(folder: Path, *, processors: tuple[int, int, int] = (16, 8, 4)) -> Path:
    jobs = zip((500, 510, 520), (0, 10, 200_000), (4000, 50_000, 10), processors, (7200, 90_000, 3600), strict=True)
    path = folder / "contract.swf"
    write_swf(path, log_of((SUBMIT, "wait_time", RUN, SIZE, ASKED), *jobs))
    return path


_CABLED = """
name = "cube"
kind = "cabled-torus"
prefix = "cub"
cnodes_per_midplane = 1
processors_per_midplane = 8
dimension = [{name = "x", ring = [0, 1]}, {name = "y", ring = [0, 1]}, {name = "z", ring = [0, 1]}]
"""
_ANGARA = """
name = "tesseract"
kind = "angara-torus"
prefix = "tes"
dimension_names = ["x", "y", "z"]
extents = [2, 2, 2]
"""


def _replayed(folder: Path, **options: object) -> dict[str, object]:
    return {"log": str(_log(folder)), "base_time_s": 100, **options}


def _modelled(folder: Path, description: str, **options: object) -> dict[str, object]:
    # Eight units of eight cores; at the log's second 600 its first two jobs take two pairs of them, which lie side by
    # side, so that all free cores are one box.
    machine = folder / "machine.toml"
    machine.write_text(description, encoding="utf-8")
    log = _log(folder, processors=(16, 16, 8))
    return {"machine": str(machine), "log": str(log), "size_divisor": 8, "base_time_s": 600, **options}


MACHINES: dict[str, tuple[Open, Callable[[Path], Mapping[str, object]]]] = {
    "fake_qstat": (fake_qstat.open_plugin, _replayed),
    "fake_qstat at 60 times wall speed": (
        fake_qstat.open_plugin,
        lambda folder: _replayed(folder, speed=60, base_time_s=0),
    ),
    # A light load, so that there are free cores at once.
    "fake_qstat on a synthetic log": (fake_qstat.open_plugin, lambda _: {"log": "synthetic", "synthetic_load": 0.02}),
    "queue-bound": (waiting_plugin.open_plugin, lambda _: {"system": "simulated"}),
    "own_plugin (example)": (runpy.run_path(str(EXAMPLE))["Desk"], lambda _: {}),
    "steady": (steady.open_plugin, lambda _: {"load": 0.25}),
    "modelled with cables": (modelled.open_plugin, lambda folder: _modelled(folder, _CABLED)),
    "modelled at 60 times wall speed": (
        modelled.open_plugin,
        lambda folder: _modelled(folder, _CABLED, speed=60, log="synthetic", load=0),
    ),
    "modelled Angara": (
        modelled.open_plugin,
        lambda folder: _modelled(folder, _ANGARA, scheduler="conservative", overrun="keep"),
    ),
}

FASTER = " at 60 times wall speed"
"""The same machine once more: for the slower tests."""

REAL_SYSTEMS = {"slurm", "gridengine"}
"""Plug-ins that keep the contract on the real system, in the folder of `tests/e2e` that is called so."""

E2E = Path(__file__).parents[1] / "e2e"


def _subject(open_plugin: Open, folder: Path, options: Mapping[str, object]) -> Subject:
    settings = PluginSettings("contract1", CORES, 8, NOW - MINUTE, options, seed=3)
    return Subject(open_plugin, settings, NOW, folder / "states")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where machines keep the tables that they have made, for all tests here."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if FASTER in name else [], id=name.replace(" ", "-"))
        for name in MACHINES
    ],
)
def test_keeps_the_contract(
    name: str, plugin_rule: Rule, tables: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", tables)
    open_plugin, options = MACHINES[name]
    plugin_rule.check(_subject(open_plugin, tmp_path, options(tmp_path)))


def test_every_registered_plugin_is_tested_here() -> None:
    registered = {entry.name for entry in entry_points(group="ramp.resource_plugins")}
    assert registered <= {name.split()[0] for name in MACHINES} | REAL_SYSTEMS


def test_plugins_of_real_systems_are_tested_on_them() -> None:
    for name in REAL_SYSTEMS:
        tests = "".join(path.read_text(encoding="utf-8") for path in (E2E / name).glob("test_*.py"))
        assert "plugin_rule.check" in tests


def test_the_example_of_a_plugin_is_short() -> None:
    lines = EXAMPLE.read_text(encoding="utf-8").partition("class Desk")[2].splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 44


class _Faulty(SteadyMachine):
    """A machine that is well; what is wrong with one is written over it."""

    def __init__(self, settings: PluginSettings) -> None:
        super().__init__(settings.resource, settings.cores, 0.25, settings.state_dir)
        self.settings = settings


def _faulty(**methods: Callable[..., Any]) -> Open:
    def open_plugin(settings: PluginSettings) -> Any:
        if "no_such_option" in settings.options:
            return steady.open_plugin(settings)
        return type("Faulty", (_Faulty,), methods)(settings)

    return open_plugin


def _raising(error: Exception) -> Callable[..., Any]:
    def call(*_: object) -> Any:
        raise error

    return call


def _forgetful(settings: PluginSettings) -> Any:
    return steady.open_plugin(replace(settings, state_dir=None))


def _changed(machine: Any, key: str, _: int, cores: int, until: int, now: int) -> Any:
    """Says that it has changed what it has not."""
    found = SteadyMachine.reservation(machine, key, now)
    return found and replace(found, slot=replace(found.slot, cores=cores, end=until))


def _growing_in_words(machine: Any, key: str, step: int, cores: int, until: int, now: int) -> Any:
    """Shrinks as it should, and says that it has grown when it has not."""
    found = SteadyMachine.reservation(machine, key, now)
    if found is None or cores <= found.slot.cores:
        return SteadyMachine.resize(machine, key, step, cores, until, now)
    return _changed(machine, key, step, cores, until, now)


def _half_loaded(machine: Any, unit: RequestUnit, now: int) -> Any:
    """Says the same load whatever is reserved."""
    found = SteadyMachine.quote(machine, unit, now)
    return replace(found, load=0.5) if isinstance(found, Slot) else found


def _later(steps: Iterator[int] = count(1)) -> int:  # noqa: B008 each call counts on
    return next(steps)


def _named_alike(self: Any, *arguments: Any) -> Any:
    """Gives all reservations the same name."""
    answer = SteadyMachine.hold(self, *arguments)
    return replace(answer, reservation_id="r1") if isinstance(answer, Reservation) else answer


FAULTS: dict[str, tuple[Open, str]] = {
    "quote raises": (_faulty(quote=_raising(ValueError("no qstat"))), "a-slot-lies-in-the-window"),
    "quote raises PluginError": (_faulty(quote=_raising(PluginError("x", "down"))), "a-slot-lies-in-the-window"),
    "quote has no time": (_faulty(quote=lambda self, unit, now: Slot(now, now, 8, 0.0)), "a-slot-lies-in-the-window"),
    "quote is a text": (_faulty(quote=lambda *_: "yes"), "quotes-change-nothing"),
    "load does not count holds": (_faulty(quote=_half_loaded), "load-counts-reservations"),
    "sold twice": (_faulty(_taken=lambda *_: ""), "a-slot-that-has-gone-is-refused"),
    "confirm is None": (_faulty(confirm=lambda *_: None), "the-same-key-is-the-same-reservation"),
    "confirm is not firm": (_faulty(confirm=SteadyMachine.reservation), "everything-survives-a-restart"),
    "release does nothing": (_faulty(release=lambda *_: None), "what-was-released-stays-released"),
    "release raises": (_faulty(release=_raising(KeyError("k"))), "releasing-the-unknown-is-no-error"),
    "forgets what is live": (
        _faulty(forget=lambda self, keys, now: [SteadyMachine.release(self, key, now) for key in keys]),
        "what-is-live-is-not-forgotten",
    ),
    "forget raises": (_faulty(forget=_raising(KeyError("k"))), "what-is-over-is-forgotten"),
    "forgets ids": (_faulty(hold=_named_alike), "what-is-over-is-forgotten"),
    "forgets": (_forgetful, "everything-survives-a-restart"),
    "resize changes nothing": (
        _faulty(resize=lambda self, key, step, cores, until, now: SteadyMachine.reservation(self, key, now)),
        "a-smaller-reservation-stays-smaller",
    ),
    "resize frees nothing": (_faulty(resize=_changed), "what-a-change-frees-is-free"),
    "resize only says that it grows": (_faulty(resize=_growing_in_words), "what-is-added-is-set-aside"),
    "resize ends as before": (_faulty(resize=_changed), "a-later-end-is-kept-or-refused"),
    "resize takes any step": (
        _faulty(resize=lambda self, key, step, *args: SteadyMachine.resize(self, key, _later(), *args)),
        "an-earlier-step-changes-nothing",
    ),
    "resize raises": (_faulty(resize=_raising(KeyError("k"))), "only-what-is-firm-changes"),
    "by key": (
        _faulty(reservations=lambda self, now: tuple(sorted(SteadyMachine.reservations(self, now), key=str))),
        "reservations-are-listed-by-start",
    ),
    "no sweep": (
        _faulty(reservations=lambda self, _: SteadyMachine.reservations(self, NOW)),
        "a-hold-ends-at-its-deadline",
    ),
    "source": (_faulty(__init__=lambda self, s: (_Faulty.__init__(self, s), setattr(self, "source", "real"))[0]),
               "source-is-one-of-three"),
    "snapshot is no JSON": (_faulty(snapshot=lambda *_: {"load": {1, 2}}), "a-snapshot-is-plain-json"),
}  # fmt: skip


QUICK = ("forgets ids", "by key", "resize frees nothing", "release raises", "no sweep")
"""Tried every time; `make slow` tries all."""


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=[] if fault in QUICK else pytest.mark.slow) for fault in FAULTS]
)
def test_the_contract_finds(fault: str, tmp_path: Path) -> None:
    open_plugin, rule = FAULTS[fault]
    results = {each.rule.name: each for each in check_plugin(_subject(open_plugin, tmp_path, {}), 60)}
    assert results[rule].verdict is Verdict.BROKEN, results[rule]
    assert results[rule].reason


def test_a_call_that_does_not_return_is_found_and_ends_the_checking(tmp_path: Path) -> None:
    subject = _subject(_faulty(snapshot=lambda *_: time.sleep(3600)), tmp_path, {})
    results = check_plugin(subject, 0.5)
    broken = [each.rule.name for each in results if each.verdict is Verdict.BROKEN]
    assert broken == ["a-snapshot-is-plain-json"]
    after = results[[each.rule.name for each in results].index(broken[0]) + 1 :]
    assert after
    assert {each.verdict for each in after} == {Verdict.NOT_CHECKED}


def test_one_that_cannot_forget_is_not_judged_by_it(tmp_path: Path) -> None:
    class Remembering(_Faulty):
        forget = ResourcePlugin.forget

    results = check_plugin(_subject(lambda settings: Remembering(settings), tmp_path, {}), 60)
    why = {each.rule.name: each.reason for each in results if each.verdict is Verdict.NOT_CHECKED}
    assert set(why) == {"what-is-over-is-forgotten", "what-is-live-is-not-forgotten"}
    assert all("has no `forget`" in reason for reason in why.values())


def test_one_that_cannot_change_sizes_is_not_judged_by_it(tmp_path: Path) -> None:
    class Fixed(_Faulty):
        resize = ResourcePlugin.resize

    results = check_plugin(_subject(lambda settings: Fixed(settings), tmp_path, {}), 60)
    why = {each.rule.name: each.reason for each in results if each.verdict is Verdict.NOT_CHECKED}
    assert set(why) == {trial.__name__.replace("_", "-") for trial in trials_of(resizing)}
    assert all("has no `resize`" in reason for reason in why.values())


def test_a_full_machine_is_not_judged(tmp_path: Path) -> None:
    results = check_plugin(_subject(steady.open_plugin, tmp_path, {"load": 1.0}), 60)
    assert Verdict.BROKEN not in {each.verdict for each in results}
    reasons = {each.reason for each in results if each.verdict is Verdict.NOT_CHECKED}
    assert len(reasons) == 1
    assert "no 4 cores free" in reasons.pop()


def test_every_rule_has_its_own_name_and_a_sentence() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.sentence.endswith(".") for rule in RULES)
