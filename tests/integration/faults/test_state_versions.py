"""A state folder or a configuration of another version is refused as a whole, before anything is started."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ramp.cli.main import main
from ramp.runtime.journal import SqliteJournal
from ramp.runtime.ledger.store import LedgerStore
from ramp.runtime.state_folder import StateFolder
from tests.integration.faults.one_process import CONFIG


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    """What a market leaves on disk: a journal and a ledger."""
    (tmp_path / "market.toml").write_text(CONFIG)
    state = StateFolder(tmp_path / "state")
    state.prepare()
    SqliteJournal(state.journal("alpha")).close()
    LedgerStore.open(state.ledger).close()
    return state


@pytest.mark.parametrize(
    ("file", "what", "mark", "got"),
    [
        ("journals/alpha.sqlite", "journal", "PRAGMA user_version=2", "2"),
        ("journals/alpha.sqlite", "journal", "PRAGMA user_version=0", "none"),
        ("ledger.sqlite", "ledger", "UPDATE ledger_version SET version = 5", "5"),
    ],
)
def test_a_state_folder_of_another_version_is_refused_before_anything_is_started(
    file: str, what: str, mark: str, got: str, state: StateFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    path = state.path / file
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(mark)
    before = {each: each.read_bytes() for each in state.journals.iterdir() if not each.name.endswith("-shm")}
    assert main(["up", str(state.path.parent / "market.toml"), "--detach", "--state-dir", str(state.path)]) == 2
    said = capsys.readouterr().err
    assert f"{path}: wrong version of this {what}: got {got}, expected 1" in said
    assert "start with an empty state folder, or use the version of RAMP that wrote it" in said
    assert {each: each.read_bytes() for each in before} == before


def test_a_configuration_of_another_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "market.toml"
    path.write_text(f"version = 2\nsomething_new = true\n{CONFIG}")
    assert main(["config", "--check", str(path)]) == 2
    assert f"{path}: wrong version of this configuration: got 2, expected 1" in capsys.readouterr().err
    path.write_text(f"version = 1\n{CONFIG}")
    assert main(["config", "--check", str(path)]) == 0
    path.write_text(f'version = "new"\n{CONFIG}')
    assert main(["config", "--check", str(path)]) == 2
    assert "version: got 'new', expected a whole number" in capsys.readouterr().err


@pytest.mark.parametrize(("lines", "least"), [("retention_s = 600", 1200), ("offer_validity_s = 7200", 7200)])
def test_a_retention_that_peers_may_outlast_is_refused(
    lines: str, least: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "market.toml"
    path.write_text(f"{CONFIG}\n[timing]\n{lines}\n")
    assert main(["config", "--check", str(path)]) == 2
    given = 600 if "retention" in lines else 3600
    right = f"timing.retention_s: got {given}, expected {least} or more"
    assert right in capsys.readouterr().err


def test_agreements_that_every_bank_would_refuse_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "market.toml"
    path.write_text(f"{CONFIG}\n[timing]\nagreement_validity_s = 901\n")
    assert main(["config", "--check", str(path)]) == 2
    assert "timing.agreement_validity_s: got 901, expected 900 or less" in capsys.readouterr().err
