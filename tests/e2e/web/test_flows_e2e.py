"""A request built, quoted, watched, bought and withdrawn in a browser."""

import re

import pytest

pytestmark = pytest.mark.e2e


def fill(page, unit, **fields):
    card = page.get_by_label(f"Unit {unit}", exact=True)
    for label, text in fields.items():
        card.get_by_label(label.replace("_", " "), exact=True).fill(text)


@pytest.fixture
def alice(visitor, pages):
    page = visitor("alice")
    page.goto(pages.url + "/ask")
    page.get_by_role("heading", name="The request").wait_for()
    return page


def test_a_request_of_two_units_from_the_form_to_the_agreement(alice, pages):
    alice.get_by_role("button", name="Add a unit").click()
    alice.get_by_label("Unit 2", exact=True).wait_for()
    fill(alice, 1, Total_cores="8")
    fill(alice, 2, Total_cores="16", Run_time="30min")
    # 8 cores x 1 h x 70 and 16 cores x 0.5 h x 70
    alice.get_by_text("Maximum total cost: 1 120.00 credits.").wait_for()
    alice.get_by_text("Both are bought together or not at all.").wait_for()
    alice.get_by_label("Your name for it").fill("first run")
    alice.get_by_role("button", name="Quote").click()
    alice.get_by_role("heading", name="Quote", exact=True).wait_for()
    alice.get_by_text("Nothing is reserved or bought.").wait_for()
    assert alice.get_by_role("heading", name="Bought", exact=True).count() == 0
    alice.get_by_role("link", name="Back to the form").click()
    alice.get_by_text("Maximum total cost: 1 120.00 credits.").wait_for()  # as it was left
    alice.get_by_role("button", name="Auction and buy").click()
    alice.get_by_role("heading", name="Bought", exact=True).wait_for()
    alice.get_by_text("paid, with both signatures and the payment proof").nth(1).wait_for()
    alice.get_by_text("voted yes, cores reserved").nth(1).wait_for()
    alice.locator("canvas").nth(1).wait_for()  # the prices of both units by round
    # the page is the same after a reload, from the agent's record and what the server has seen
    alice.reload()
    alice.get_by_role("heading", name="Bought", exact=True).wait_for()
    alice.goto(pages.url + "/requests")
    alice.get_by_label("Search").fill("first")
    alice.get_by_role("row").filter(has_text="first run").filter(has_text="committed").wait_for()
    alice.get_by_label("Search").fill("second")
    alice.get_by_role("row").filter(has_text="first run").first.wait_for(state="detached")


def test_a_document_up_and_down(alice, tmp_path):
    with alice.expect_download() as saved:
        alice.get_by_role("button", name="Download").click()
    text = saved.value.path().read_text()
    assert "<TotalCores>64</TotalCores>" in text
    changed = tmp_path / "changed.xml"
    changed.write_text(text.replace(">64<", ">32<"))
    with alice.expect_file_chooser() as chooser:
        alice.get_by_role("button", name="Upload RFQL").click()
    chooser.value.set_files(changed)
    alice.get_by_text("Maximum total cost: 2 240.00 credits.").wait_for()
    broken = tmp_path / "broken.xml"
    broken.write_text("<RequestForQuotation>")
    with alice.expect_file_chooser() as chooser:
        alice.get_by_role("button", name="Upload RFQL").click()
    chooser.value.set_files(broken)
    alice.get_by_text(re.compile("broken.xml: line 1: not well-formed")).wait_for()


def test_offers_are_approved_or_declined_on_the_page(alice, pages):
    for answer, ended in (("Decline", "Not bought: rejected"), ("Approve and buy", "Bought")):
        alice.goto(pages.url + "/ask")
        alice.get_by_label("Total cores").fill("4")
        alice.get_by_label("Before buying").click()
        alice.get_by_role("option", name="ask me before buying").click()
        alice.get_by_role("button", name="Auction and buy").click()
        alice.get_by_role("heading", name="Your approval is required").wait_for()
        alice.get_by_role("button", name=answer).click()
        alice.get_by_role("heading", name=ended, exact=True).wait_for()


def test_a_quoted_offer_that_is_not_the_best_is_bought_by_the_keyboard(alice, pages):
    alice.get_by_label("Total cores").fill("4")
    alice.get_by_role("button", name="Quote").click()
    buttons = alice.get_by_role("button", name="Buy this")
    buttons.nth(1).wait_for()
    second = alice.get_by_role("region", name="Offers").get_by_role("row").nth(2).get_by_role("cell")
    seller, total = second.nth(2).inner_text(), second.nth(7).inner_text()
    buttons.nth(1).focus()
    left = alice.get_by_role("timer").inner_text()
    alice.get_by_role("timer").filter(has_not_text=left).wait_for()  # the page changes, the button keeps the focus
    alice.keyboard.press("Enter")
    alice.get_by_text(f"Exactly these offers of {seller}, all or none.").wait_for()
    alice.get_by_role("button", name="Buy", exact=True).focus()
    alice.keyboard.press("Enter")
    alice.get_by_role("heading", name="Bought", exact=True).wait_for()
    assert alice.get_by_label("Outcome").get_by_role("cell", name=seller, exact=True).count() == 1
    assert alice.get_by_label("Outcome").get_by_role("cell", name=total, exact=True).count() == 1


@pytest.mark.full
def test_a_request_that_nobody_can_serve_says_what_would_pass(alice, pages, visitor):
    alice.get_by_label("Total cores").fill("5000")
    alice.get_by_text("Maximum total cost: 350 000.00 credits.").wait_for()
    alice.get_by_role("button", name="Auction and buy").click()
    alice.get_by_role("heading", name="Not bought: no offers").wait_for()
    alice.get_by_role("cell", name="machine too small").wait_for()
    alice.get_by_role("cell", name=re.compile("512 cores")).wait_for()
    bob = visitor("bob")
    bob.goto(alice.url)
    bob.get_by_text(re.compile("no request of bob")).wait_for()
