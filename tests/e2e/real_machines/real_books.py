"""What must be true of a market on real systems at rest: their own lists against the ledger and the agreements."""

import re
import subprocess

from ramp.batch.reconciling import reservation_name
from tests.e2e.batch_jobs.psij_environment import ACCOUNT
from tests.e2e.swarm.swarm_books import Books

GRIDENGINE, SLURM = "site1", "site2"
_SLURM_USERS = re.compile(r"^ReservationName=(\S+) .* Users=(\S+) ", re.MULTILINE)


class RealBooks(Books):
    """Looks into a market's files, and asks its Grid Engine and its Slurm clusters what they have reserved.

    Args:
        market: the market.
        gridengine: the cell of `site1`.
        slurm: the clusters of the other sellers, by their names.
    """

    def __init__(self, market, gridengine, slurm):
        super().__init__(market)
        self._gridengine, self._slurm = gridengine, slurm

    def listed(self):
        """Ids of the reservations that each system's own list has (`qrstat`, `scontrol show reservation`)."""
        advance = self._gridengine("qrstat", "-u", "*").splitlines()[2:]
        on_slurm = {seller: set(self._users_on(seller)) for seller in self._slurm}
        return {GRIDENGINE: {line.split()[0] for line in advance}, **on_slurm}

    def reserved_elsewhere(self):
        """Offers whose slots are reserved there; what no agreement names stands there as the system calls it."""
        offers = {(_seller(each), each["reservation_id"]): each["offer"]["offer_id"] for each in self._agreed()}
        real = {(seller, name) for seller, names in self.listed().items() for name in names}
        return [offers.get(each, " ".join(each)) for each in real]

    def findings(self):
        """As of every market; and whose the reservations are. A system that does not answer is a finding."""
        try:
            return super().findings() + self._wrong_owners()
        except (subprocess.SubprocessError, AssertionError) as error:
            return [f"a system does not answer: {error}"]

    def _users_on(self, seller):
        """Who may run in the reservations of a seller's Slurm."""
        return dict(_SLURM_USERS.findall(self._slurm[seller].run("scontrol", "-o", "show", "reservation")))

    def _agreed(self, *states):
        """Agreements, of those states or of any."""
        return [each["agreement"] for each in self.agreements() if not states or each["state"] in states]

    def _wrong_owners(self):
        found = []
        users = {seller: self._users_on(seller) for seller in self._slurm}
        usersets = set()
        for each in self._agreed("active"):
            user = users.get(_seller(each), {}).get(each["reservation_id"])
            if _seller(each) in users and user != ACCOUNT:
                found.append(f"{each['reservation_id']} is {user}'s on Slurm")
            if _seller(each) == GRIDENGINE:
                usersets.add(reservation_name(GRIDENGINE, each["offer"]["offer_id"]))
        there = {name for name in self._gridengine("qconf", "-sul").split() if name.startswith("ramp_")}
        if there != usersets:
            found.append(f"Grid Engine has the usersets {there}, sold is {usersets}")
        shown = {name: self._gridengine("qconf", "-su", name) for name in usersets & there}
        return found + [f"{name} is {text}" for name, text in shown.items() if f"entries {ACCOUNT}\n" not in text]


def _seller(agreement):
    return agreement["offer"]["resource"].partition("@")[0]
