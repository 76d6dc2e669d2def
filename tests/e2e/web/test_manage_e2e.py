"""What was bought: chart and list, agreement, a job on the slot, giving back, the account."""

import re

import pytest

import ramp
from ramp.cli.main import main
from ramp.web.pages.frame import amount
from tests.e2e.web.conftest import LIMIT_S

pytestmark = pytest.mark.e2e

LATER = ramp.request(cores=8, wall_time="1h", start="+6h", price=70)


@pytest.fixture(scope="module")
def bought(market):
    """Two slots of alice: one that has begun, one that begins in six hours, whatever the tests wait for."""
    with ramp.connect(market, user="alice") as alice:
        begun = alice.submit(ramp.request(cores=4, wall_time="1h", end="+2h", price=70), rounds=1)
        later = alice.submit(LATER, rounds=1)
        assert (begun.status, later.status) == ("committed", "committed")
        return begun.units[0], later.units[0]


@pytest.fixture
def alice(visitor, bought):
    return visitor("alice")


def test_the_chart_and_the_list_have_what_was_bought(alice, pages, bought):
    alice.goto(pages.url + "/reservations")
    for unit in bought:
        alice.get_by_role("cell", name=unit.reservation_id, exact=True).wait_for()
    alice.locator("section", has=alice.get_by_role("heading", name="By machine")).locator("canvas").wait_for()
    alice.get_by_role("link", name=bought[1].reservation_id, exact=True).click()
    alice.get_by_role("heading", name=re.compile(f"Reservation {bought[1].reservation_id} on")).wait_for()


def test_the_agreement_is_checked_and_comes_down_as_it_is(alice, pages, bought, tmp_path, market):
    alice.goto(f"{pages.url}/reservations/{bought[1].agreement_id}")
    alice.get_by_text(re.compile(r"Valid: 1\d checks passed offline")).wait_for()
    with alice.expect_download() as saved:
        alice.get_by_role("button", name="Download agreement").click()
    path = tmp_path / "agreement.xml"
    saved.value.save_as(path)
    assert main(["verify", str(path), "--state-dir", str(market)]) == 0


def test_a_job_on_the_slot_its_output_and_its_files(alice, pages, bought, tmp_path):
    command = (
        'sh -c \'echo from the browser; mkdir out; echo 42 > "out/a b"; printf "and a \\033[31mwarning\\033[0m" >&2\''
    )
    alice.goto(f"{pages.url}/reservations/{bought[0].agreement_id}")
    alice.get_by_label("Command", exact=True).fill(command)
    alice.get_by_role("button", name="Run job").click()
    alice.get_by_role("cell", name="done", exact=True).wait_for()
    alice.locator("section", has=alice.get_by_role("heading", name="Delivery")).locator("canvas").wait_for()
    alice.get_by_role("button", name="Show").press("Enter")
    alice.get_by_role("region", name="Standard output").get_by_text("from the browser").wait_for()
    alice.get_by_role("region", name="Standard error").get_by_text("and a warning").wait_for()
    with alice.expect_download() as saved:
        alice.get_by_role("button", name="out/a b").press("Enter")
    saved.value.save_as(tmp_path / "saved")
    assert ((tmp_path / "saved").read_text(), saved.value.suggested_filename) == ("42\n", "a b")


def test_giving_back_says_what_comes_back_and_it_does(alice, pages, market):
    from playwright.sync_api import expect

    with ramp.connect(market, user="alice") as buyer:
        (unit,) = buyer.submit(LATER, rounds=1).units
    refund = amount(unit.cost)
    alice.goto(f"{pages.url}/reservations/{unit.agreement_id}")
    alice.get_by_role("button", name="Cancel reservation").click()
    alice.get_by_text(f"Full refund before the start: {refund} credits.").wait_for()
    alice.get_by_role("dialog").get_by_role("button", name="Cancel reservation").click()
    alice.get_by_text("cancelled", exact=True).wait_for()
    left = alice.get_by_role("button", name="Cancel reservation")  # the dialog's goes when it has closed
    expect(left).to_have_count(0, timeout=1000 * LIMIT_S)
    alice.goto(pages.url + "/account")
    alice.get_by_role("cell", name=f"+{refund}", exact=True).first.wait_for()
    alice.locator("canvas").wait_for()


def ask_for(page, cores=""):
    """Ask what another number of cores would cost; without one, what the present one would."""
    page.get_by_role("button", name="Resize").click()
    if cores:
        page.get_by_label("Cores", exact=True).fill(cores)
    page.get_by_role("button", name="Preview the change").click()


def test_a_smaller_slot_is_priced_confirmed_watched_and_stands_in_the_chain(alice, pages, market):
    with ramp.connect(market, user="alice") as buyer:
        (unit,) = buyer.submit(ramp.request(cores=16, wall_time="2h", start="+6h", price=70), rounds=1).units
    alice.goto(f"{pages.url}/reservations/{unit.agreement_id}")
    alice.get_by_text("No changes of size.").wait_for()
    half = amount(unit.cost // 2)
    ask_for(alice)
    alice.get_by_text("no change: enter another").wait_for()
    ask_for(alice, "8")
    alice.get_by_text(re.compile(rf"8 cores until .* refund: {half} credits")).wait_for()
    alice.get_by_role("button", name="Keep it").click()
    alice.get_by_role("button", name="Apply the change").wait_for(state="detached")
    ask_for(alice, "8")
    alice.get_by_role("button", name="Apply the change").click()
    alice.get_by_text(re.compile("agreed; takes effect in [0-9]+ s")).wait_for()
    alice.get_by_text(re.compile(f"Done: 8 cores until .* refunded {half} credits")).wait_for()
    alice.get_by_role("cell", name="original", exact=True).wait_for()
    alice.get_by_role("row", name=re.compile(rf"^1 8 \+{re.escape(ramp.credits_text(unit.cost // 2))} ")).wait_for()
    alice.get_by_text(f"The agreement and its amendment form one chain: {half} of").wait_for()
    alice.get_by_text(re.compile(r"Valid: [2-9][0-9] checks passed offline")).wait_for()
    alice.goto(pages.url + "/account")
    alice.get_by_role("cell", name=f"+{half}", exact=True).first.wait_for()


@pytest.mark.full
def test_a_larger_slot_is_priced_confirmed_and_paid(alice, pages, market):
    with ramp.connect(market, user="alice") as buyer:
        (unit,) = buyer.submit(LATER, rounds=1).units
        (asked,) = buyer.resize(unit.agreement_id, cores=24, quote_only=True)
        assert asked.charge > 0, asked.detail
        cost = amount(asked.charge)
        alice.goto(f"{pages.url}/reservations/{unit.agreement_id}")
        ask_for(alice, "24")
        alice.get_by_text(re.compile(rf"24 cores until .* cost: {re.escape(cost)} credits")).wait_for()
        alice.get_by_role("button", name="Apply the change").click()
        alice.get_by_text(re.compile(rf"Done: 24 cores until .*; paid {re.escape(cost)} credits")).wait_for()
        alice.get_by_role("row", name=re.compile(rf"^1 24 -{re.escape(ramp.credits_text(asked.charge))} ")).wait_for()
        alice.get_by_text("The agreement and its amendment form one chain").wait_for()
        (grown,) = [each for each in buyer.reservations() if each.agreement_id == unit.agreement_id]
        assert (grown.cores, grown.cost) == (24, unit.cost + asked.charge)
        assert buyer.resize(unit.agreement_id, cores=8)[0].done  # seen on the open page as well
    alice.get_by_role("row", name=re.compile(r"^2 8 \+")).wait_for()
    alice.goto(pages.url + "/account")
    alice.get_by_role("cell", name=f"-{cost}", exact=True).first.wait_for()


@pytest.mark.full
def test_another_user_finds_nothing_under_the_same_id(pages, bought, visitor):
    bob = visitor("bob")
    bob.goto(f"{pages.url}/reservations/{bought[1].agreement_id}")
    bob.get_by_text(re.compile("bob has no reservation with the id")).wait_for()
    assert bought[1].reservation_id not in bob.content()
