"""Writes the table of messages in ARCHITECTURE.md anew (mark `<!-- table: believed -->`): what makes each believed.

Who may say what comes from `ramp.model.acl`; the words for the few messages that bear no seal are here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ramp.model import contents
from ramp.model.acl import CONTENT_OF, OFFERS, ROLES_OF, SEALED
from ramp.model.agreement import Signed

DOCUMENT = Path(__file__).parents[2] / "ARCHITECTURE.md"
BLOCK = re.compile(r"(<!-- table: believed -->\n).*?(<!-- end table -->)", re.DOTALL)

WITHOUT_A_SEAL: Final[dict[type, str]] = {
    Signed: "XML signatures: the user's, and the resource's around it",
    contents.PaymentQuery: "the sender's name; only a party of the agreement is answered",
    contents.ClockQuery: "nothing; it asks",
    contents.MachineQuery: "nothing; it asks",
    contents.MachineStatus: "the sender's name; for people",
    contents.DirectoryQuery: "nothing; it asks",
    contents.EnrolmentRequest: "its proof, an HMAC under the invitation's secret",
    contents.RevocationQuery: "nothing; it asks",
    contents.NotUnderstood: "nothing rests on it",
}
PASSED_ON: Final[dict[type, str]] = {
    contents.Commitment: "the user's XML signature and the bank's seal in it",
    contents.Settled: "both XML signatures and the bank's seal in it",
    contents.RefundClaim: "the resource's seal in it",
}


def table() -> str:
    """The table, one row a message."""
    rows = ["| message | performative | believed for |", "|---|---|---|"]
    seen: list[type] = []
    for kinds in CONTENT_OF.values():
        seen += [kind for kind in kinds if kind not in seen and kind is not contents.Unverified]
    for kind in seen:
        name = "Agreement, Cancellation" if kind is Signed else kind.__name__
        spoken = ", ".join(performative for performative, kinds in CONTENT_OF.items() if kind in kinds)
        rows.append(f"| {name} | {spoken} | {_believed(kind)} |")
    return "\n".join(rows)


def _believed(kind: type) -> str:
    if kind not in SEALED | OFFERS:
        return WITHOUT_A_SEAL[kind]
    seal = f"the seal of a {' or '.join(sorted(ROLES_OF[kind], reverse=True))}"
    if kind in OFFERS:
        by_rule = " or the auction's rule wants it" if kind is contents.Proposal else ""
        return f"the sender's name; where offers are signed{by_rule}, {seal}"
    return f"{seal}; {PASSED_ON[kind]}" if kind in PASSED_ON else seal


if __name__ == "__main__":
    DOCUMENT.write_text(BLOCK.sub(lambda match: f"{match[1]}{table()}\n{match[2]}", DOCUMENT.read_text()))
