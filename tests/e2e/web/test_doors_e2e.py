"""Who gets into the pages of a real server, tried with a browser."""

import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import ramp
from ramp.runtime.joining.invitations import Register, read_invitation
from ramp.runtime.state_folder import state_folder
from tests.waiting import LIMIT_S, until

pytestmark = pytest.mark.e2e


def test_a_link_from_the_terminal_signs_in_once(pages, visitor):
    page = visitor()
    page.goto(pages.links["alice"])
    page.click("button")
    page.get_by_role("heading", name="Sellers").wait_for()
    for name in ("alpha", "beta", "gamma"):
        page.get_by_role("cell", name=name, exact=True).wait_for()
    other = visitor()
    assert other.goto(pages.links["alice"]).status == 403
    assert other.get_by_text("has been used").count() == 1
    assert other.goto(pages.url + "/").url.endswith("/login")


def test_the_keeper_sees_the_bank_and_users_do_not(visitor):
    keeper = visitor("keeper")
    keeper.get_by_role("tab", name="Accounts").click()
    keeper.get_by_role("cell", name="alice", exact=True).first.wait_for()
    assert keeper.get_by_role("cell", name="1 000 000.00").count() >= 1
    keeper.get_by_role("tab", name="Transactions").click()
    keeper.get_by_role("cell", name="deposit").first.wait_for()
    bob = visitor("bob")
    bob.get_by_role("heading", name="Sellers").wait_for()
    assert "1000000" not in "".join(bob.locator("main").inner_text().split())


def test_the_keeper_deposits_drains_and_prices_after_a_confirmation(visitor, pages):
    keeper = visitor("keeper")
    keeper.get_by_role("tab", name="Accounts").click()
    keeper.get_by_role("button", name="Deposit").click()
    keeper.get_by_label("Account", exact=True).fill("bob")
    keeper.get_by_label("Amount (credits)").fill("many")
    keeper.get_by_role("button", name="Continue").click()
    keeper.get_by_text("invalid amount of credits").wait_for()
    assert keeper.get_by_label("Amount (credits)").get_attribute("aria-invalid") == "true"
    keeper.get_by_label("Amount (credits)").fill("123.45")
    keeper.get_by_role("button", name="Continue").click()
    keeper.get_by_text("The market issues 123.45 credits to bob.").wait_for()
    keeper.get_by_role("dialog").get_by_role("button", name="Deposit").click()
    keeper.get_by_text("123.45 credits credited to bob.").wait_for()
    keeper.get_by_role("cell", name="133.45", exact=True).wait_for()
    keeper.get_by_role("tab", name="Machines").click()
    row = keeper.get_by_role("row").filter(has=keeper.get_by_role("link", name="gamma"))
    row.get_by_role("button", name="Change").click()
    _choose(keeper, "Sales", "sells nothing new")
    keeper.get_by_role("button", name="Continue").click()
    keeper.get_by_role("dialog").filter(has_text="Drain gamma?").get_by_role("button", name="Drain").click()
    keeper.get_by_text("gamma is draining.").wait_for()
    row.get_by_role("cell", name="draining").wait_for()
    row.get_by_role("button", name="Change").click()
    keeper.get_by_label("Start price (credits/core-hour)").fill("97")
    keeper.get_by_role("button", name="Continue").click()
    keeper.get_by_text("New offers start at 97 credits/core-hour.").wait_for()
    keeper.get_by_role("button", name="Set the price").click()
    keeper.get_by_text("The price is set.").wait_for()
    row.get_by_role("cell", name="97", exact=True).wait_for()


def _choose(page, label, choice):
    # a dialog takes the focus when it has opened, which closes a menu that is open by then
    page.wait_for_function("document.getAnimations().every((each) => each.playState !== 'running')")
    page.get_by_label(label).click()
    page.get_by_role("option", name=choice, exact=True).click()


def test_the_keeper_invites_a_user_and_gets_the_file_of_the_invitation(visitor, pages):
    keeper = visitor("keeper")
    keeper.get_by_role("tab", name="Accounts").click()
    keeper.get_by_role("button", name="Invite").click()
    keeper.get_by_label("Full name").fill("ann@localhost")
    keeper.get_by_role("button", name="Continue").click()
    keeper.get_by_text("the first to use it joins as ann@localhost").wait_for()
    with keeper.expect_download() as downloaded:
        keeper.get_by_role("button", name="Invite", exact=True).last.click()
    made = read_invitation(Path(downloaded.value.path()).read_text(), "the download")
    assert (made.name, made.role.value) == ("ann@localhost", "user")
    assert Register(state_folder(pages.state).invitations).entries()[made.invitation_id].invitation.name == made.name


def test_a_page_says_that_its_session_has_ended_elsewhere_and_what_is_not_found(visitor, pages):
    first = visitor("alice")
    first.get_by_role("heading", name="Market").wait_for()
    other = first.context.new_page()
    other.goto(pages.url + "/no/such/page")
    other.get_by_role("heading", name="Page not found").wait_for()
    other.goto(pages.url + "/requests")
    other.get_by_role("button", name="Sign out").click()
    first.get_by_role("heading", name="Sign in").wait_for()


@pytest.mark.full
def test_metrics_are_for_who_has_the_token_and_count_what_is_bought(pages):
    token = (pages.state / "metrics-token").read_text().strip()
    assert (pages.state / "metrics-token").stat().st_mode & 0o777 == 0o600

    def collected(shown=token):
        asked = urllib.request.Request(f"{pages.url}/metrics", headers={"authorization": f"Bearer {shown}"})
        with urllib.request.urlopen(asked, timeout=LIMIT_S) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        return {(each.name, *each.labels.values()): each.value for found in families for each in found.samples}

    with pytest.raises(urllib.error.HTTPError) as refused:
        collected("guessed")
    assert refused.value.code == 401
    with urllib.request.urlopen(pages.url + "/healthz", timeout=LIMIT_S) as answer:
        assert answer.read() == b"ok\n", "without a token"
    before = collected()
    assert before["ramp_agents_on_market", "resource"] == 3
    assert before["ramp_balance_credits", "user"] > 0
    with ramp.connect(pages.state, user="alice") as alice:
        assert alice.submit(ramp.request(cores=8, wall_time="1h", start="+10min", price=70)).committed

    def counted():
        found = collected()
        key = "ramp_auctions_total", "committed"
        return found if found[key] > before[key] else None

    found = until(counted, "the auction is counted")
    assert found["ramp_paid_credits_total",] > before["ramp_paid_credits_total",]
    assert found["ramp_auction_rounds_count",] > 0
