"""What is looked at anew once code has changed, what is tried with all tests then, and what is not tried at all."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mutmut", reason="`make mutants` installs it")

from mutmut.mutation.data import SourceFileMutationData

from tests.mutation import __main__ as program
from tests.mutation import quick_runs


def test_what_was_seen_before_code_has_changed_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = Path("module.py")
    monkeypatch.setattr(quick_runs, "walk_mutatable_files", lambda: [code])

    def remains() -> bool:
        quick_runs.REACHED.write_text("")
        quick_runs.look_anew_where_code_has_changed()
        return quick_runs.REACHED.exists()

    code.write_text("def one(): ...")
    quick_runs.look_anew_where_code_has_changed()
    assert remains()
    code.write_text("def one(): ...\n\n\ndef another(): ...")
    assert not remains()
    assert remains()


def test_what_mypy_refuses_and_what_needs_no_trial_is_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mutants").mkdir()
    data = SourceFileMutationData(path=Path("module.py"))
    killed, wanted, argued, refused = (f"module.x_one__mutmut_{number}" for number in range(4))
    data.exit_code_by_key = {killed: 1, wanted: None, argued: None, refused: None}
    trials = [(data, name, verdict) for name, verdict in data.exit_code_by_key.items()]
    monkeypatch.setattr(quick_runs, "collect_source_file_mutation_data", lambda **_: (trials, {"module.py": data}))
    monkeypatch.setattr(quick_runs, "refused_by_mypy", lambda: {refused: None})

    left, _ = quick_runs.left_to_try((), lambda name, path: path == Path("module.py") and name != wanted)

    assert left == [(data, wanted, None)]
    kept = SourceFileMutationData(path=Path("module.py"))
    kept.load()
    assert kept.exit_code_by_key == {killed: 1, wanted: None, argued: quick_runs.SKIPPED, refused: 37}


def test_a_survivor_needs_no_trial_while_its_very_change_is_accounted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    path, name = Path("ramp/module.py"), "ramp.module.x_one__mutmut_1"
    change = program.Mutant("ramp/module.py one", ("- a", "+ b"))
    monkeypatch.setattr(program, "mutant_of", lambda *_: change)
    monkeypatch.setattr(program, "changes_words_only", lambda *_: False)
    assert program.needs_no_trial(name, path, {change})
    assert not program.needs_no_trial(name, path, ())  # as with --argued
    assert not program.needs_no_trial(name, path, {program.Mutant(change.place, ("- a", "+ c"))})
    monkeypatch.setattr(program, "changes_words_only", lambda *_: True)
    assert program.needs_no_trial(name, path, ())


def test_likely_tests_come_first_then_the_quickest_and_the_order_never_changes() -> None:
    seconds = {"slow": 3.0, "quick": 1.0, "killer": 9.0, "likely": 2.0}
    tests = ["slow", "same b", "likely", "same a", "killer", "quick"]
    expected = ["likely", "killer", "same a", "same b", "quick", "slow"]
    for order in (tests, tests[::-1]):
        assert quick_runs.likely_first(order, ("likely", "killer"), seconds) == expected
