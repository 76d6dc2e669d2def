"""The services in the directory, and the roles that may offer them."""

from __future__ import annotations

from typing import Final

from ramp.model.seal import Role

RESOURCE_SERVICE: Final = "resource-trader"
"""Service type under which resources register with the directory; the original system's name."""

DRAINING_SERVICE: Final = "resource-draining"
"""Additional service type of a resource that keeps its sold reservations and sells nothing new."""

ROLE_OF_SERVICE: Final = {RESOURCE_SERVICE: Role.RESOURCE, DRAINING_SERVICE: Role.RESOURCE}
"""The market's services, and the roles that may offer them."""
