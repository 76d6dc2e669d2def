"""`ramp doctor` without a batch system: what it says of a state folder, certificates, journals and the disk."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ramp.batch.inspecting import Promise
from ramp.cli.main import main
from ramp.control.status import AgentStatus, ServerStatus, SwarmStatus, headline
from ramp.doctor import examination
from ramp.doctor.examination import examine, forgotten, promises_of
from ramp.errors import RampError
from ramp.model.agreement import TERMINAL, Agreement, ContractChange, Signed
from ramp.model.contents import FundsReserved, PaymentMade
from ramp.model.instant import DAY, HOUR, MINUTE, from_iso
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.seal import Role, Seal
from ramp.model.slot import Slot
from ramp.protocol import records as rc
from ramp.runtime.configuration.file import load_config
from ramp.runtime.journal import Archive, SqliteJournal
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder
from ramp.shipped_files import find_config

NOW = from_iso("2026-11-21T08:00:00Z")
AGENT = AgentStatus("big1", "resource", 7, "ready", "", 0, "", is_up=True, clock_offset_ms=-12.0)
STATUS = SwarmStatus("up", "", 6, "m.toml", ServerStatus("embedded", "127.0.0.1", 5222, 5), (AGENT,))

SEAL = Seal("bank", Role.BANK, "big1", "r1", 6, "sealed")
UNIT = RequestUnit(1, 70, 2 * HOUR, TotalCores(16))
OFFER = Offer("o", "r1", 1, "big1", 60, HOUR, 2 * HOUR, 16, 0.25, HOUR)
AGREEMENT = Agreement("a1", "r1", 1, "alice", "big1", "bank", UNIT, OFFER, "R1", OFFER.cost, 0, "order-1", 10**12)
SALE: tuple[rc.Record, ...] = (
    rc.HoldIntended(OFFER, UNIT, Slot(HOUR, 2 * HOUR, 16, 0.25), "alice", MINUTE, SEAL, 1, ""),
    rc.HoldMade("o", "R1", MINUTE, 2),
    rc.AgreementReceived("o", Signed(AGREEMENT, ("alice",)), FundsReserved("order-1", "alice", (), 9, 10, 2), SEAL, 3),
    rc.AgreementPaid("o", PaymentMade("a1", "t1", OFFER.cost), SEAL, 4),
    rc.SlotReleased("o", "a1", RefusalCode.CANCELLED, "given back", OFFER.cost, SEAL, 5),
)
"""All that a resource notes of an offer that is sold and cancelled."""


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    folder = StateFolder(tmp_path / "state")
    folder.prepare()
    return folder


def test_a_market_that_never_was_is_well_and_it_is_said_that_none_runs(
    state: StateFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--state-dir", str(state.path)]) == 0
    shown = capsys.readouterr()
    assert "no market is running; reading the state folder" in shown.err
    assert "No problems found" in shown.out


def test_certificates_that_end_soon_are_findings_with_what_to_do(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = KeyStore(state.keys)
    store.create_ca(NOW, market="a market")
    store.issue("alice@localhost", Role.USER, NOW, lifetime=29 * DAY)
    store.issue("bob@localhost", Role.USER, NOW, lifetime=300 * DAY)
    found = [each for each in examination.certificates(state, NOW) if each.is_finding]
    assert [(each.subject, each.do) for each in found] == [("alice@localhost", "ramp keys renew alice@localhost")]
    monkeypatch.setattr(examination, "clock", lambda: NOW + 30 * DAY)
    report = examine(state)
    (expired,) = [each for each in report.findings if each.check == "certificates"]
    assert "is expired" in expired.says


def test_a_revoked_certificate_is_a_finding_where_its_party_is_still_on_the_market(state: StateFolder) -> None:
    store = KeyStore(state.keys)
    store.create_ca(NOW, market="a market")
    for name in ("alice@localhost", "carol@localhost"):
        store.issue(name, Role.USER, NOW)
        store.revoke(name, NOW + MINUTE)
    config = load_config(find_config("quickstart"))  # has an alice, and no carol
    found = [each for each in examination.certificates(state, NOW + HOUR, config) if each.is_finding]
    assert [(each.subject, each.do) for each in found] == [
        ("alice@localhost", "ramp keys renew alice@localhost --new-key")
    ]
    assert not any(each.is_finding for each in examination.certificates(state, NOW + HOUR))


def test_a_disk_that_is_nearly_full_is_a_finding(state: StateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_free(megabytes: int) -> None:
        told = SimpleNamespace(free=megabytes << 20)
        monkeypatch.setattr(examination, "shutil", SimpleNamespace(disk_usage=lambda _: told))

    with_free(199)
    found = [each for each in examination.disk(state) if each.is_finding]
    assert found[0].says.startswith("199 MB are free below ")
    with_free(200)
    assert not [each for each in examination.disk(state) if each.is_finding and "MB" in each.says]


def test_agents_that_are_ill_and_clocks_that_are_wrong() -> None:
    assert not any(each.is_finding for each in examination.agents(STATUS))
    ill = replace(AGENT, state="degraded", detail="slurmctld does not answer", clock_warning="it is 3 s ahead")
    found = [each for each in examination.agents(replace(STATUS, agents=(ill,))) if each.is_finding]
    assert [(each.check, each.subject) for each in found] == [("agents", "big1"), ("clock", "big1")]
    assert "slurmctld does not answer" in found[0].says


def test_a_standby_bank_is_well() -> None:
    """With PostgreSQL and a standby the doctor found something every time, which made it useless for monitoring."""
    standby = replace(AGENT, name="bank-2", role="bank", state="standby", detail="bank is the bank", is_up=False)
    remarks = list(examination.agents(replace(STATUS, agents=(AGENT, standby))))
    assert not [each for each in remarks if each.is_finding]
    assert "2 of 2 respond" in [each.says for each in remarks]
    assert headline(replace(STATUS, agents=(AGENT, standby))).health == "up"


def test_the_ledgers_database_is_asked_by_the_driver_of_the_bank() -> None:
    """`postgresql://` alone names psycopg2 in SQLAlchemy, which RAMP neither has nor needs."""
    config = load_config(find_config("quickstart"))
    away = "postgresql://ramp:hidden@127.0.0.1:9/ledger?connect_timeout=1"  # the port of `discard`
    (found,) = examination.ledger(replace(config, ledger=away))
    assert "psycopg2" not in found.says
    assert "hidden" not in found.says
    assert ("connection" in found.says, found.is_finding) == (True, True)


def test_a_server_that_nobody_reaches() -> None:
    assert not any(each.is_finding for each in examination.server(None, STATUS))
    silent = replace(STATUS, server=replace(STATUS.server, problem="does not answer"))
    (found,) = examination.server(None, silent)
    assert found.is_finding


def test_one_that_cannot_be_looked_at_stops_no_other(state: StateFolder, capsys: pytest.CaptureFixture[str]) -> None:
    state.changes.write_text("{")
    assert main(["doctor", "--state-dir", str(state.path), "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["running"] is False
    assert [each["check"] for each in shown["findings"]] == ["configuration"]
    assert all(each["do"] for each in shown["findings"])
    assert {each["check"] for each in shown["well"]} >= {"certificates", "disk", "version"}


def test_a_configuration_that_is_not_there_is_bad_input(state: StateFolder) -> None:
    assert main(["doctor", "no-such-file.toml", "--state-dir", str(state.path)]) == 2


def test_a_journal_that_is_none_is_told(tmp_path: Path) -> None:
    path = tmp_path / "big1.sqlite"
    assert Archive(path).open_records() == ()
    path.write_text("no journal" * 100)
    with pytest.raises(RampError, match="invalid or damaged journal"):
        Archive(path).open_records()


def test_promises_are_what_was_accepted_and_not_released(tmp_path: Path) -> None:
    path = tmp_path / "big1.sqlite"
    journal = SqliteJournal(path)
    for record in SALE:
        journal.append(record)
    journal.close()
    assert Archive(path).open_records() == SALE
    held = Promise("o", "", paid=False, end=2 * HOUR, ends_as_hold=MINUTE)
    assert promises_of(SALE[:1]) == promises_of(SALE[:2]) == (held,)
    assert held.live(MINUTE - 1)
    assert not held.live(MINUTE)
    agreed = replace(held, agreement_id="a1", ends_as_hold=None)
    assert promises_of(SALE[:3]) == (agreed,)
    assert promises_of(SALE[:4]) == (replace(agreed, paid=True),)
    assert agreed.live(2 * HOUR - 1)
    assert not agreed.live(2 * HOUR)
    assert promises_of(SALE) == ()
    half_past = HOUR + 30 * MINUTE
    shorter = ContractChange("a1", 1, "o", "alice", "big1", "bank", 0, "-", 16, half_past, MINUTE, -48_000, HOUR)
    told = (*SALE[:4], rc.ChangeReceived("o", Signed(shorter, ("alice",)), 0))
    assert promises_of(told) == (replace(agreed, paid=True),)  # the machine has it as it was
    taken = (*told, rc.CapacityTaken("o", 1, 0))
    assert promises_of(taken) == (replace(agreed, paid=True, end=half_past),)
    cancelled = replace(shorter, number=TERMINAL, cores=0, until=0)
    kept = (*taken, rc.ChangeReceived("o", Signed(cancelled, ("alice",)), 0), rc.ChangeDropped("o", 0, "no", "", 0))
    assert promises_of(kept) == promises_of(taken)
    assert promises_of((*kept, rc.ChangeDropped("o", 1, "expired", "", 0))) == (replace(agreed, paid=True),)


def test_a_paid_slot_that_the_machine_does_not_show_is_a_finding() -> None:
    sold = [Promise(key, f"agreement-{key}", paid=True, end=HOUR, ends_as_hold=None) for key in ("o1", "o2")]
    shown = [{"key": "o1", "reservation_id": "R1"}]
    (found,) = forgotten("big1", sold, shown, MINUTE)
    assert found.is_finding
    assert found.says == "the machine does not have the slot sold under agreement-o2"
    assert not list(forgotten("big1", sold, shown, HOUR))
