"""What `ramp verify` prints of the examples, whole; serial numbers alone change when the examples are signed anew."""

import json
import re
from pathlib import Path

import pytest

from ramp.cli.main import main

EXAMPLES = Path(__file__).resolve().parents[2] / "schemas" / "examples"
SERIAL = re.compile(r"certificate [0-9a-f]{30,40}\b")

AGREEMENT = """\
passed: well-formed CountersignedAgreement, no forbidden markup, N characters
passed: certificate S of thunder1@localhost: of this market, valid, revocation not checked
passed: signature of thunder1@localhost over the whole CountersignedAgreement (ECDSA_SHA256)
passed: follows the schema
passed: certificate S of alice@localhost: of this market, valid, revocation not checked
passed: signature of alice@localhost over the whole Agreement (ECDSA_SHA256)
passed: request, offer and cost agree with one another
passed: alice@localhost is the party that the document names, certified as user
passed: thunder1@localhost is the party that the document names, certified as resource
passed: signed by both parties
passed: certificates held when it was signed, 2026-11-21T08:00:00Z and 2026-11-21T08:00:01Z
alice@localhost has bought 128 cores of thunder1@localhost from 2026-11-21T09:00:00Z to 2026-11-21T12:00:00Z \
at 55 credits/core-hour, 21 120.00 credits in all (agreement agreement-9, reservation thunder1-000123, order order-6)
FILE: holds
"""
CANCELLATION = """\
passed: well-formed ContractChange, no forbidden markup, N characters
passed: certificate S of alice@localhost: of this market, valid, revocation not checked
passed: signature of alice@localhost over the whole ContractChange (ECDSA_SHA256)
passed: alice@localhost is the party that the document names, certified as user
passed: certificates held when it was signed, 2026-11-21T08:01:00Z
alice@localhost has cancelled agreement agreement-9 with thunder1@localhost at 2026-11-21T08:01:00Z: \
not needed any more
FILE: holds
"""
AMENDMENT = """\
passed: well-formed CountersignedContractChange, no forbidden markup, N characters
passed: certificate S of thunder1@localhost: of this market, valid, revocation not checked
passed: signature of thunder1@localhost over the whole CountersignedContractChange (ECDSA_SHA256)
passed: follows the schema
passed: certificate S of alice@localhost: of this market, valid, revocation not checked
passed: signature of alice@localhost over the whole ContractChange (ECDSA_SHA256)
passed: alice@localhost is the party that the document names, certified as user
passed: thunder1@localhost is the party that the document names, certified as resource
passed: signed by both parties
passed: certificates held when it was signed, 2026-11-21T09:30:00Z and 2026-11-21T10:00:01Z
alice@localhost and thunder1@localhost have changed agreement agreement-9 (amendment 1): 64 cores until \
2026-11-21T12:00:00Z from 2026-11-21T10:00:00Z on, for 7 040.00 credits back
FILE: holds
"""
PAYMENT = """\
passed: certificate S of bank@localhost as bank: of this market, valid, revocation not checked
passed: seal of bank@localhost over the whole message, N characters of document
passed: PaymentMade goes with agree, and bank is the role to say it in
passed: certificate held when it was sealed, 2026-11-21T08:00:00Z
Said by       bank@localhost, certified as bank
To            thunder1@localhost
At            2026-11-21T08:00:00Z
Conversation  request-4
In answer to  agreement-9-1
What          PaymentMade (agree)
Document      <PaymentMade xmlns="urn:ramp:market:1" agreementId="agreement-9" transferId="transfer-5" \
amount="2112000"/>
FILE: holds
"""


def printed(capsys: pytest.CaptureFixture[str], path: Path) -> tuple[int, str]:
    code = main(["verify", str(path), "--ca", str(EXAMPLES / "market-ca.pem")])
    text = capsys.readouterr().out.replace(str(path), "FILE")
    return code, re.sub(r"\d+ characters", "N characters", SERIAL.sub("certificate S", text))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("valid/countersigned-agreement.xml", AGREEMENT),
        ("valid/cancellation.xml", CANCELLATION),
        ("valid/countersigned-change.xml", AMENDMENT),
        ("sealed/payment-made.txt", PAYMENT),
    ],
)
def test_what_is_printed(capsys: pytest.CaptureFixture[str], name: str, expected: str) -> None:
    assert printed(capsys, EXAMPLES / name) == (0, expected)


@pytest.mark.parametrize("path", sorted((EXAMPLES / "sealed").glob("*.txt")), ids=lambda path: path.stem)
def test_every_sealed_example_holds(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    assert main(["verify", str(path), "--ca", str(EXAMPLES / "market-ca.pem"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["kind"], report["holds"]) == ("sealed message", True)
    assert report["message"]["document"] in path.read_text("utf-8")
    of_bank = ("payment-made", "funds-reserved", "change-posted")
    said_by = dict.fromkeys(of_bank, "bank") | {"deposit-order": "keeper"}
    assert report["message"]["role"] == report["signatures"][0]["role"] == said_by.get(path.stem, "resource")


def test_changed_message_does_not_hold(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "payment.txt"
    path.write_text((EXAMPLES / "sealed" / "payment-made.txt").read_text("utf-8").replace("2112000", "2112001"))
    code, text = printed(capsys, path)
    assert code == 1
    assert text.splitlines()[-1] == "FAILED: the seal does not fit the message from 'bank@localhost'"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<a/>", "unsigned kind of document: got a, "),
        ('<PaymentMade xmlns="urn:ramp:market:1"/>', "unsigned kind of document: got PaymentMade, "),
        ("PK\x03\x04", "neither a signed document nor a sealed message: got 'PK"),
        ("", "neither a signed document nor a sealed message: got '', "),
        ("RAMP sealed message 7\n", " or the line 'RAMP sealed message 1'"),
    ],
)
def test_anything_else_is_bad_input(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "something"
    path.write_text(text)
    assert main(["verify", str(path), "--ca", str(EXAMPLES / "market-ca.pem")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    for part in (str(path), reason, "expected an agreement, an amendment or a cancellation"):
        assert part in said.err


FIRST, SECOND = "countersigned-change", "countersigned-second-change"


def chain(capsys: pytest.CaptureFixture[str], *names: str) -> tuple[int, list[str]]:
    paths = [str(EXAMPLES / "valid" / f"{name}.xml") for name in names]
    code = main(["verify", *paths, "--ca", str(EXAMPLES / "market-ca.pem")])
    return code, [line for line in capsys.readouterr().out.splitlines() if "one chain" in line or "FAILED" in line]


def test_an_agreement_is_followed_through_its_amendments(capsys: pytest.CaptureFixture[str]) -> None:
    """64 of 128 cores for two of three hours, a third; then an hour of 64, a sixth: half of 21 120.00 in all."""
    expected = (
        "agreement agreement-9 and its 2 amendments are one chain: 64 cores until 2026-11-21T11:00:00Z, "
        "10 560.00 credits returned of 21 120.00 credits"
    )
    assert chain(capsys, SECOND, "countersigned-agreement", FIRST) == (0, [expected])


def test_a_chain_that_lacks_a_link_does_not_hold(capsys: pytest.CaptureFixture[str]) -> None:
    why = "it changes an outdated state of the slot"
    broken = f"FAILED: amendment 3 does not follow: other_state: {why}"
    assert chain(capsys, "countersigned-agreement", SECOND) == (1, [broken])


def test_the_chain_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(EXAMPLES / "valid" / f"{name}.xml") for name in ("countersigned-agreement", FIRST)]
    assert main(["verify", *paths, "--ca", str(EXAMPLES / "market-ca.pem"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    agreement, amendment = said["files"]
    assert amendment["amendment"]["previous"] == agreement["agreement"]["digest"]
    assert said["chains"] == [
        {
            "agreement_id": "agreement-9",
            "amendments": [1],
            "holds": True,
            "failure": "",
            "cores": 64,
            "end": "2026-11-21T12:00:00Z",
            "returned": said["chains"][0]["returned"],
            "charged": "0.00",
        }
    ]
    assert (said["holds"], said["chains"][0]["returned"]) == (True, "7040.00")
