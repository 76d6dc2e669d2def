"""The latest form of each session, which survives reloads and restarts of the server."""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from pathlib import Path
from typing import Final

from ramp.control.codec import findings_of
from ramp.runtime.atomic_writes import write_whole
from ramp.runtime.model_json import strict_converter
from ramp.web.asking.draft import Draft

DRAFTS_MAX: Final = 200
"""Maximum number of forms; the oldest is deleted."""

FILE_MAX: Final = 4 << 20
"""Maximum size of the file in bytes; two hundred forms of two units need a tenth."""


class Drafts:
    """The forms, by session.

    Args:
        path: of their file; if it cannot be read or written, only the forms are lost.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = ""
        self._told = False
        self._drafts: OrderedDict[str, Draft] = OrderedDict()
        try:
            with path.open("rb") as file:
                found = json.loads(file.read(FILE_MAX))
            self._drafts.update(strict_converter().structure(found, dict[str, Draft]))
        except FileNotFoundError:
            pass
        except Exception as error:  # cattrs raises whatever it meets
            logging.getLogger(__name__).warning(
                "cannot read the drafts of requests in %s: %s", path, findings_of(error)
            )

    def of(self, key: str) -> Draft:
        found = self._drafts.setdefault(key, Draft())
        while len(self._drafts) > DRAFTS_MAX:
            self._drafts.popitem(last=False)
        return found

    def replace(self, key: str, draft: Draft) -> None:
        self._drafts[key] = draft

    def keep(self) -> None:
        text = json.dumps(strict_converter().unstructure(dict(self._drafts)))
        if text == self._written:
            return
        try:
            write_whole(self._path, text.encode(), private=True)
        except OSError as error:
            if not self._told:
                logging.getLogger(__name__).warning("cannot store drafts of requests: %s", error)
            self._told = True
            return
        self._written, self._told = text, False
