"""What parties enter in the directory, and who may."""

from __future__ import annotations

from typing import Final

from ramp.model.seal import Role

RESOURCE_SERVICE: Final = "resource-trader"
"""Service type under which resources register with the directory; the original system's name."""

DRAINING_SERVICE: Final = "resource-draining"
"""Under which a resource registers as well while it keeps what it has sold and sells nothing new."""

ROLE_OF_SERVICE: Final = {RESOURCE_SERVICE: Role.RESOURCE, DRAINING_SERVICE: Role.RESOURCE}
"""The market's services, and who may offer them."""
