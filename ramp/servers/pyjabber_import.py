"""Imports pyjabber without its pages, uploads and migrations, which the embedded server never uses.

They would bring alembic and aiohttp, 0.3 s and 25 MB, and make a scratch directory.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any


class _Off:
    """Replaces a service that is off; pyjabber's server makes one of each and starts none."""

    def __init__(self, *_: object) -> None:
        pass

    def get_aiohttp_webapp(self) -> tuple[str, None]:
        return "", None


_STAND_INS: dict[str, dict[str, Any]] = {
    "alembic": {"command": None},
    "alembic.config": {"Config": None},
    "pyjabber.http_server": {"HttpServer": _Off},
    "pyjabber.plugins.xep_0363.upload_server": {"UploadHttpServer": _Off},
    "pyjabber.webpage.adminPage": {"api_adminpage_app": _Off},
}


def import_server() -> None:
    """Import `pyjabber.server`; the stand-ins are removed afterwards. Modules that are already imported stay."""
    added = []
    for name, members in _STAND_INS.items():
        if name not in sys.modules:
            sys.modules[name] = module = types.ModuleType(name)
            module.__dict__.update(members)
            added.append(name)
    try:
        importlib.import_module("pyjabber.server")
    finally:
        for name in added:
            del sys.modules[name]
