"""Which tests reach which function is looked at anew once code has changed, and what has survived is tried with all."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mutmut", reason="`make mutants` installs it")

from tests.mutation import quick_runs


def test_what_was_seen_before_code_has_changed_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = Path("module.py")
    monkeypatch.setattr(quick_runs, "walk_mutatable_files", lambda: [code])

    def remains() -> bool:
        for seen in (quick_runs.REACHED, quick_runs.SURVIVED):
            seen.write_text("")
        quick_runs.look_anew_where_code_has_changed()
        left = {quick_runs.REACHED.exists(), quick_runs.SURVIVED.exists()}
        assert len(left) == 1
        return left.pop()

    code.write_text("def one(): ...")
    quick_runs.look_anew_where_code_has_changed()
    assert remains()
    code.write_text("def one(): ...\n\n\ndef another(): ...")
    assert not remains()
    assert remains()
