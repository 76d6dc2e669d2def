"""A resource's answers to a call for proposals: offers, refusals and their codes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ramp.model import money
from ramp.model.instant import Duration, Instant


class RefusalCode(StrEnum):
    """Reasons not to offer, hold or confirm; closed, so that clients can count on it."""

    PRICE = "price_below_minimum"
    OWN_OFFER_STANDS = "own_offer_stands"
    MACHINE_TOO_SMALL = "machine_too_small"
    CORES_TAKEN = "cores_taken"
    WINDOW_TOO_SHORT = "window_too_short"
    WINDOW_PASSED = "window_passed"
    OPERATING_SYSTEM = "operating_system"
    OS_VERSION = "os_version"
    ARCHITECTURE = "architecture"
    CPU_SPEED = "cpu_speed"
    BANDWIDTH = "inter_node_bandwidth"
    MEMORY = "ram_per_core"
    DISK = "disk_space"
    NODE_CORES = "cores_per_node"
    TORUS = "torus_terms"
    GPUS = "gpus_per_node"
    GPU_MODEL = "gpu_model"
    GPU_MEMORY = "gpu_memory"
    APPLICATION = "application"
    PLUGIN_FAILED = "machine_unavailable"
    UNKNOWN_OFFER = "unknown_offer"
    SLOT_TAKEN = "slot_taken"
    HOLD_EXPIRED = "hold_expired"
    CANCELLED = "cancelled"
    NO_ANSWER = "no_answer"
    BAD_PROPOSAL = "bad_proposal"
    BAD_AGREEMENT = "bad_agreement"
    BAD_PRICE = "bad_price"
    BAD_SIGNATURE = "bad_signature"
    PAYMENT_REFUSED = "payment_refused"
    QUOTA = "quota_exceeded"
    DRAINING = "draining"
    NO_ACCOUNT = "no_account"
    NOT_DELIVERED = "not_delivered"
    START_PROBABILITY = "start_probability"
    SIZE_AGAINST_LAW = "size_against_law"
    OTHER_SITE = "other_site"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A coded "no" for one unit.

    Attributes:
        unit: the unit's number.
        code: the reason.
        nearest: the nearest value that would pass, with its unit (`40 credits/core-hour`, an ISO time), or empty.
        detail: one sentence for people.
    """

    unit: int
    code: RefusalCode
    nearest: str = ""
    detail: str = ""

    @property
    def passing(self) -> str:
        """The value that would pass, for people; may be empty."""
        return f"{self.nearest} ({self.detail})" if self.code is RefusalCode.PRICE and self.detail else self.nearest


NOT_RESIZABLE: Final = Refusal(0, RefusalCode.PLUGIN_FAILED, detail="this machine cannot change its reservations")
"""The answer of a machine that changes the size of no reservation."""


def ease(code: RefusalCode, nearest: str) -> tuple[float, str]:
    """Return a key for `sorted` that puts the nearest value that is easiest to meet first.

    For prices and instants that is the least, because it adds or delays least; for properties of a machine it is the
    greatest, because it drops least from the request.
    """
    number = re.match(r"(\d+(?:\.\d+)?) ", nearest)
    if number is None:
        return 0.0, nearest
    size = float(number[1])
    return (size if code is RefusalCode.PRICE else -size), nearest


@dataclass(frozen=True, slots=True)
class Offer:
    """A priced slot on one machine for one unit.

    Attributes:
        offer_id: unique; the key of everything that follows from the offer.
        request_id: the auction it belongs to.
        unit: the unit's number.
        resource: name of the offering agent.
        cpu_hour_cost: whole credits per core hour.
        start: start of the slot.
        end: end of the slot.
        cores: cores charged for (machines with whole nodes round up).
        load: share of the machine taken over the slot without this job, 0 to 1.
        valid_for: how long the offer holds, from when it was made.
        source: origin of the machine's queue: `log`, `synthetic` or `live`.
        placement: place on the machine, in the machine's words; may be empty.
        asked: the price asked for in the call, credits per core hour; 0 if the price paid is the price offered.
        terms: digest of the call (`ramp.model.called_terms`); empty likewise.
        start_probability: probability that the job starts by `start`, if a submitted job is sold; None for a reserved
            slot (`ramp.model.probable_start`).
        if_late: refund if it does not, in the words of `probable_start.RefundRule`; empty likewise.
    """

    offer_id: str
    request_id: str
    unit: int
    resource: str
    cpu_hour_cost: int
    start: Instant
    end: Instant
    cores: int
    load: float
    valid_for: Duration
    source: str = "live"
    placement: str = ""
    asked: int = 0
    terms: str = ""
    start_probability: float | None = None
    if_late: str = ""

    @property
    def in_queue(self) -> bool:
        """Whether a job in a queue is sold instead of a reserved slot, so that its start is only probable."""
        return self.start_probability is not None

    @property
    def cost(self) -> int:
        """The cost of the whole slot in minor units."""
        return money.cost(self.cpu_hour_cost, self.cores, self.end - self.start)
