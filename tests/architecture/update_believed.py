"""Write the table of messages in docs/design/trust.md (mark `<!-- table: believed -->`): why each one is trusted.

Performatives, roles and seals come from `ramp.model.acl`. The reasons for the few messages without a seal are here.
"""

import re
from pathlib import Path
from typing import Final

from ramp.model import contents
from ramp.model.acl import CONTENT_OF, OFFERS, ROLES_OF, SEALED
from ramp.model.agreement import Signed

DOCUMENT = Path(__file__).parents[2] / "docs" / "design" / "trust.md"
BLOCK = re.compile(r"(<!-- table: believed -->\n).*?(<!-- end table -->)", re.DOTALL)

WITHOUT_A_SEAL: Final[dict[type, str]] = {
    Signed: "XML signatures of the user and the resource, or of the resource alone if it has failed",
    contents.PaymentQuery: "the sender's name; the bank answers only parties of the agreement",
    contents.ClockQuery: "no proof needed; a question",
    contents.MachineQuery: "no proof needed; a question",
    contents.MachineStatus: "the sender's name; for display",
    contents.DirectoryQuery: "no proof needed; a question",
    contents.EnrolmentRequest: "an HMAC under the invitation's secret",
    contents.RevocationQuery: "no proof needed; a question",
    contents.NotUnderstood: "no proof needed; a notice",
}
PASSED_ON: Final[dict[type, str]] = {
    contents.Commitment: "the enclosed XML signature of the user and seal of the bank",
    contents.Settled: "both enclosed XML signatures and the enclosed seal of the bank",
}


def table() -> str:
    """Return the table, one row per message."""
    rows = ["| message | performative | trusted because of |", "|---|---|---|"]
    seen: list[type] = []
    for kinds in CONTENT_OF.values():
        seen += [kind for kind in kinds if kind not in seen and kind is not contents.Unverified]
    for kind in seen:
        name = "Agreement, ContractChange" if kind is Signed else kind.__name__
        spoken = ", ".join(performative for performative, kinds in CONTENT_OF.items() if kind in kinds)
        rows.append(f"| {name} | {spoken} | {_believed(kind)} |")
    return "\n".join(rows)


def _believed(kind: type) -> str:
    if kind not in SEALED | OFFERS:
        return WITHOUT_A_SEAL[kind]
    seal = f"the seal of the {' or '.join(sorted(ROLES_OF[kind], reverse=True))}"
    if kind in OFFERS:
        by_rule = " or the auction rule requires it" if kind is contents.Proposal else ""
        return f"the sender's name; where offers are signed{by_rule}, {seal}"
    return f"{seal}; {PASSED_ON[kind]}" if kind in PASSED_ON else seal


if __name__ == "__main__":
    DOCUMENT.write_text(BLOCK.sub(lambda match: f"{match[1]}{table()}\n{match[2]}", DOCUMENT.read_text()))
