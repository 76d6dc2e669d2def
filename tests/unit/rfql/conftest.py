"""Keys, an agreement and its signatures for the document tests; the keys are made once, times are fixed."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ramp.model.agreement import ContractChange, Signed
from ramp.model.instant import HOUR, MINUTE, SECOND, Duration, from_iso
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.rfql import documents
from ramp.rfql.signing.certificates import Trust
from ramp.rfql.signing.notary import XmlNotary
from ramp.runtime.keys.store import CERTIFICATE_LIFETIME, KeyStore
from tests.agreements import agreement_of

NOW = from_iso("2026-11-21T08:00:00Z")
USER = "alice@localhost"
RESOURCE = "thunder1@localhost"
MALLORY = "mallory@localhost"
BANK = "bank@localhost"
DIRECTORY = "directory@localhost"
KEEPER = "keeper@localhost"
ROLES = {
    USER: Role.USER,
    RESOURCE: Role.RESOURCE,
    MALLORY: Role.USER,
    BANK: Role.BANK,
    DIRECTORY: Role.DIRECTORY,
    KEEPER: Role.KEEPER,
}

UNIT = RequestUnit(
    number=1,
    cpu_hour_cost=70,
    deadline=NOW + 4 * HOUR,
    cores=TotalCores(128),
    not_before=NOW + HOUR,
    wall_time=HOUR,
    operating_system="LINUX",
)
OFFER = Offer("offer-17", "request-4", 1, RESOURCE, 55, NOW + HOUR, NOW + 2 * HOUR, 128, 0.25, 30 * SECOND, "log")
AGREEMENT = agreement_of(
    OFFER,
    UNIT,
    agreement_id="agreement-9",
    user=USER,
    bank=BANK,
    reservation_id="thunder1-000123",
    cost=704_000,  # 55 credits x 128 cores x 1 hour, in hundredths
    issued_at=NOW,
    order_id="order-6",
    valid_until=NOW + 10 * MINUTE,
)
CANCELLATION = ContractChange("agreement-9", 0, "offer-17", USER, RESOURCE, BANK, NOW, reason="no need")


def market_of(folder: Path, roles: Mapping[str, Role], lifetime: Duration = CERTIFICATE_LIFETIME) -> KeyStore:
    """Return the keys of a market of its own, with certified parties."""
    keys = KeyStore(folder / "keys")
    keys.create_ca(NOW)
    for name, role in roles.items():
        keys.issue(name, role, NOW, lifetime=lifetime)
    return keys


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> KeyStore:
    """A market with one of each role, and Mallory, who has a user's certificate of the same market."""
    return market_of(tmp_path_factory.mktemp("market"), ROLES)


@pytest.fixture(scope="session")
def user_notary(store: KeyStore) -> XmlNotary:
    return store.notary(USER)


@pytest.fixture(scope="session")
def resource_notary(store: KeyStore) -> XmlNotary:
    return store.notary(RESOURCE)


@pytest.fixture(scope="session")
def signed(user_notary: XmlNotary) -> Signed:
    return user_notary.sign(Signed(AGREEMENT), NOW)


@pytest.fixture(scope="session")
def countersigned(resource_notary: XmlNotary, signed: Signed) -> Signed:
    return resource_notary.sign(signed, NOW + SECOND)


@pytest.fixture
def verifier(store: KeyStore) -> XmlNotary:
    """A bank's view: the market's CA, but no pins, so that each test shows the check it is about."""
    key, certificate = store.identity(RESOURCE)
    return XmlNotary(RESOURCE, key, certificate, Trust(store.ca_certificates()))


@pytest.fixture
def refused(verifier: XmlNotary) -> Callable[[str, type[Exception], str], None]:
    """`refused(document, error, reason)` checks that the bank refuses a document, and why."""

    def check(document: str, error: type[Exception], reason: str) -> None:
        with pytest.raises(error, match=reason):
            verifier.verify(document, NOW)

    return check


@pytest.fixture
def body() -> str:
    return documents.write_body(AGREEMENT)
