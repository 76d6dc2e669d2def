"""What is over is told from the archive: listed when asked for, and shown by any of its ids."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ramp.cli.main import main
from ramp.client.access import RunningMarket
from ramp.client.market import Market
from ramp.control.events import AgreementsListed, RequestsListed
from ramp.control.requests import ListRequests
from ramp.model.agreement import ContractChange, Signed
from ramp.model.contents import SlotMoved
from ramp.model.instant import DAY, HOUR, MINUTE, iso
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.outcome import ChangeOutcome
from ramp.protocol.records import (
    ChangeConcluded,
    ChangeProposed,
    FundsAsked,
    MoveHeard,
    reference_of,
)
from ramp.protocol.resource.seller import PriceRange
from ramp.runtime.journal import SqliteJournal
from ramp.runtime.state_folder import StateFolder
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.world import START, World
from simulation.resource.steady import SteadyMachine

PRICE = 70
"""What the machine asks at least, and the buyer gives at most; credits a core hour."""


@pytest.fixture(scope="module")
def records():
    """What alice has on record of two units bought, one of them given back, and of a request that nobody served."""
    resource = ResourceSpec("res", SteadyMachine("res", 64, 0.0), StaticTerms(64), PriceRange(PRICE, PRICE))
    world = World([resource], [UserSpec("alice", 10**9)], seed=1)
    begin = START + 30 * MINUTE

    def submit(request_id, cores, units):
        wanted = (RequestUnit(n, PRICE, begin + HOUR, TotalCores(cores), begin, HOUR) for n in range(1, units + 1))
        options = ev.AuctionOptions(rounds=2, name=f"of {cores}")
        world.command("alice", ev.RequestSubmitted(request_id, RequestForQuotation(tuple(wanted)), options))
        world.run(limit=MINUTE)

    submit("request-bought", 8, 2)
    submit("request-large", 65, 1)
    world.command("alice", ev.AgreementCancelled("agreement-alice-2", "no longer needed"))
    world.run(limit=DAY)
    journal = world._actors["alice"].journal
    assert journal.records() == ()
    return [*journal.archived, *moves_of(journal.archived)]


def moves_of(archived):
    """That the slot which was kept was moved twice."""
    (asked,) = [record for record in archived if isinstance(record, FundsAsked)]
    first = asked.agreements[0]
    for at, node in ((START + MINUTE, "n3"), (START + 2 * MINUTE, "n4")):
        word = SlotMoved(first.agreement_id, first.reservation_id, node, at)
        yield MoveHeard(asked.request_id, word, asked.vote_seals[0], at)


class Forgetful(RunningMarket):
    """A market whose User Agent has nothing at hand."""

    async def open(self):
        return self

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    async def events(self, request):
        yield RequestsListed(()) if isinstance(request, ListRequests) else AgreementsListed(())


@pytest.fixture
def ramp(records, tmp_path, monkeypatch, capsys):
    """The command line of alice, whose agent has nothing at hand and whose archive has it all."""
    state = StateFolder(tmp_path)
    state.prepare()
    journal = SqliteJournal(state.journal("alice"))
    for record in records:
        journal.append(record)
    journal.archive(sorted({reference_of(record) for record in records}))
    state.agreement("alice", "agreement-alice-1").parent.mkdir(parents=True)
    state.agreement("alice", "agreement-alice-1").write_text("<Agreement/>")
    market = Market(Forgetful(state, "alice", "localhost"))
    monkeypatch.setattr("ramp.cli.verbs.requests.open_market", lambda state, user: market)

    def run(*arguments):
        code = main([*arguments, "--state-dir", str(tmp_path)])
        said = capsys.readouterr()
        return code, json.loads(said.out) if "--json" in arguments else said.out, said.err

    return run


@pytest.mark.slow
def test_status_says_how_much_is_in_the_archive_and_lists_it_when_asked(ramp):
    assert ramp("status")[1] == "alice has no requests lately: 2 requests in the archive (--all lists them)\n"
    assert ramp("status", "--json")[1] == []
    listed = {entry["request_id"]: entry for entry in ramp("status", "--all", "--json")[1]}
    assert {name: (entry["status"], entry["units"]) for name, entry in listed.items()} == {
        "request-bought": ("committed", 2),
        "request-large": ("no_offers", 1),
    }
    assert listed["request-large"]["name"] == "of 65"
    assert all(entry["archived"] for entry in listed.values())
    money = [listed["request-bought"][key] for key in ("charged", "returned", "cost")]
    assert money == [f"{2 * 8 * PRICE}.00", f"{8 * PRICE}.00", f"{8 * PRICE}.00"]  # one of two units was cancelled
    assert "large " in ramp("status", "--all")[1]


def test_a_request_is_shown_in_full_by_its_id_or_the_beginning_of_it(ramp):
    for given in ("request-bought", "request-b"):
        code, shown, _ = ramp("status", given, "--json")
        assert (code, shown["request_id"], shown["status"]) == (0, "request-bought", "committed")
        assert len(shown["rounds"]) == 2
        assert [unit["agreement_id"] for unit in shown["units"]] == ["agreement-alice-1", "agreement-alice-2"]
    assert ramp("show", "request-large", "--json")[1]["status"] == "no_offers"
    code, _, said = ramp("status", "request-")
    assert code == 2
    assert "is ambiguous: it matches 2 ids, request-bought, request-large; give more characters" in said
    code, _, said = ramp("show", "agreement-")
    assert code == 2
    assert "agreement-alice-1, agreement-alice-2; give more characters" in " ".join(said.split())
    assert ramp("status", "request-never")[0] == 2


def test_past_reservations_are_listed_with_all_and_keep_their_files(ramp, tmp_path):
    assert ramp("reservations", "--json")[1] == []
    listed = {entry["agreement_id"]: entry for entry in ramp("reservations", "--all", "--json")[1]}
    assert {name: entry["state"] for name, entry in listed.items()} == {
        "agreement-alice-1": "past",
        "agreement-alice-2": "cancelled",
    }
    assert Path(listed["agreement-alice-1"]["file"]).is_file()
    assert listed["agreement-alice-2"]["file"] is None
    for given in ("agreement-alice-1", listed["agreement-alice-1"]["reservation_id"]):
        assert ramp("show", given, "--json")[1] == listed["agreement-alice-1"]
    name = listed["agreement-alice-1"]["reservation_id"]
    assert f"--reservation={name} " in ramp("show", name, "--as", "sbatch")[1]


def test_a_slot_that_its_seller_lost_is_shown_with_the_cause(ramp, records, tmp_path):
    (concluded,) = [each for each in records if isinstance(each, ChangeConcluded)]
    lost = ChangeOutcome(
        "agreement-alice-1", 0, True, refund=100, code="plugin_failed", detail="node n1 is drained (fan)", ends=True
    )
    journal = SqliteJournal(StateFolder(tmp_path).journal("alice"))
    journal.append(replace(concluded, outcome=lost))
    journal.archive(["agreement-alice-1"])
    shown = ramp("show", "agreement-alice-1", "--json")[1]
    assert (shown["state"], shown["cause"]) == ("lost", "node n1 is drained (fan)")
    assert "lost by the seller: node n1 is drained (fan)" in ramp("show", "agreement-alice-1")[1]
    assert ramp("show", "agreement-alice-2", "--json")[1]["cause"] is None


def test_what_is_past_is_not_cancelled_and_the_reason_is_told(ramp):
    code, (result,), _ = ramp("cancel", "agreement-alice-1", "--json")
    assert (code, result["cancelled"], result["code"]) == (1, False, "past")
    assert result["detail"] == "it is past; only a reservation that has not begun can be cancelled"
    assert ramp("cancel", "request-large")[0] == 2


def test_what_was_cancelled_long_ago_is_cancelled_again_without_a_second_refund(ramp):
    code, (result,), _ = ramp("cancel", "agreement-alice-2", "--json")
    assert (code, result["cancelled"], result["code"], result["refund"]) == (0, True, "already_cancelled", "0.00")
    assert result["detail"] == f"it was cancelled before, with a refund of {8 * PRICE}.00 credits"
    code, text, _ = ramp("cancel", "agreement-alice-2")
    assert (code, text.startswith("Agreement agreement-alice-2: already cancelled; ")) == (0, True)


def test_where_a_slot_was_moved_last_is_told_of_what_is_over_too(ramp):
    code, shown, _ = ramp("show", "agreement-alice-1", "--json")
    assert (code, shown["moved_to"], shown["moved_at"]) == (0, "n4", iso(START + 2 * MINUTE))
    assert "n4 (at " in ramp("show", "agreement-alice-1")[1]
    assert ramp("show", "agreement-alice-2", "--json")[1]["moved_to"] is None


def test_the_accepted_changes_of_a_slot_that_is_over_are_shown(ramp, records, tmp_path):
    (asked,) = [each for each in records if isinstance(each, FundsAsked)]
    (concluded,) = [each for each in records if isinstance(each, ChangeConcluded)]
    kept = asked.agreements[0]
    parties = (kept.offer.offer_id, kept.user, kept.resource, kept.bank, START)
    sizes = ("", 4, kept.offer.end, kept.offer.start, -400 * PRICE)
    reduced, refused = (ContractChange(kept.agreement_id, number, *parties, *sizes) for number in (1, 2))
    journal = SqliteJournal(StateFolder(tmp_path).journal("alice"))
    for body in (reduced, refused):
        journal.append(ChangeProposed(Signed(body), START))
        outcome = ChangeOutcome(kept.agreement_id, body.number, body is reduced, 4, kept.offer.end)
        journal.append(ChangeConcluded(outcome, concluded.seal, START))
    journal.archive([kept.agreement_id])
    shown = ramp("show", kept.agreement_id, "--json")[1]
    assert [each["number"] for each in shown["amendments"]] == [1]
    assert ramp("reservations", "--all")[0] == 0
