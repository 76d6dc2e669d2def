"""What can be added by a file: auction rules, schedulers, allocators, kinds of machines.

What comes with the project is one module each in the package of its sort, under the name of its file
(`window_first_fit.py` is `window-first-fit`), with one constant that declares it. Guests come by an entry point of
another package, or by their place: `module:Name` or `FILE.py:Name`. Nothing is imported to list names, and what cannot
be loaded is an error where it is asked for and a line where all are listed: it stops nobody else.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, Generic, TypeVar

from ramp.entry_points import entry_points
from ramp.errors import ConfigurationError, told
from ramp.options import nearest_name
from ramp.text import one_line

REASON_MAX: Final = 1_000
"""Characters of why a guest cannot be used."""

_FILE_MODULE: Final = "_file_"
"""Begin of the names of modules that are files given by their paths."""

_Declaration = TypeVar("_Declaration")


@dataclass(frozen=True, slots=True)
class Listed(Generic[_Declaration]):
    """One entry of a list of all that is declared.

    Attributes:
        name: under which it is found.
        origin: where it comes from.
        declaration: what it says; None where it cannot be used.
        error: why not.
    """

    name: str
    origin: str
    declaration: _Declaration | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Sort(Generic[_Declaration]):
    """One sort of things that are declared.

    Attributes:
        noun: what one is called, for messages.
        package: whose modules declare those that come with the project; empty where none do so by their names.
        constant: of such a module that holds the declaration.
        group: of the entry points of guests.
        adopt: makes a declaration of whatever a guest hands over, or raises `ConfigurationError`.
    """

    noun: str
    package: str
    constant: str
    group: str
    adopt: Callable[[Any], _Declaration]

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted({*_modules_of(self.package), *(entry.name for entry in entry_points(self.group))})

    def find(self, name: str) -> _Declaration:
        """What is declared under a name, or at a place `module:Name` or `FILE.py:Name`.

        Raises:
            ConfigurationError: there is none, or it cannot be used.
        """
        if ":" in name:
            return self._adopted(name, lambda: self._at_place(name))
        module = _modules_of(self.package).get(name)
        if module is not None:
            declaration: _Declaration = getattr(importlib.import_module(module), self.constant)
            return declaration
        guests = [entry for entry in entry_points(self.group) if entry.name == name]
        if not guests:
            near = nearest_name(name, self.names())
            own = f"{name}:NAME, with a name that it defines" if Path(name).is_file() else "MODULE:NAME or FILE.py:NAME"
            raise ConfigurationError(f"unknown {self.noun} {name!r}{near} (one of your own: {own})", key=self.noun)
        if len({entry.value for entry in guests}) > 1:
            both = " and ".join(sorted(_origin(entry) for entry in guests))
            raise ConfigurationError(f"{name!r} is declared by {both}; remove one", key=self.noun)
        return self._adopted(f"{name} of {_origin(guests[0])}", guests[0].load)

    def listed(self) -> list[Listed[_Declaration]]:
        """All that is declared, sorted by name; what cannot be used with the reason."""
        shipped = _modules_of(self.package)
        found: list[Listed[_Declaration]] = []
        for name in self.names():
            guests = [entry for entry in entry_points(self.group) if entry.name == name]
            origin = shipped.get(name) or ", ".join(sorted({_origin(entry) for entry in guests}))
            try:
                found.append(Listed(name, origin, self.find(name)))
            except ConfigurationError as error:
                found.append(Listed(name, origin, error=error.reason))
            if name in shipped:
                hidden = f"hidden by the {self.noun} of the same name in {shipped[name]}; give it another name"
                found += [Listed(name, _origin(entry), error=hidden) for entry in guests]
        return found

    def _adopted(self, name: str, load: Callable[[], Any]) -> _Declaration:
        """What a guest declares; whatever goes wrong in its module is told as one error."""
        try:
            return self.adopt(load())
        except ConfigurationError as error:
            raise ConfigurationError(f"{name}: {one_line(error.reason, REASON_MAX)}", key=self.noun) from error
        except (Exception, SystemExit) as error:
            raise ConfigurationError(f"{name} cannot be loaded: {told(error)}", key=self.noun) from error

    def _at_place(self, place: str) -> Any:
        """The object at `module:Name` or `FILE.py:Name`.

        Raises:
            ConfigurationError: there is no such file, module or name.
        """
        where, _, name = place.rpartition(":")
        module = load_file(Path(where)) if where.endswith(".py") else _named_module(where)
        try:
            return getattr(module, name)
        except AttributeError as error:
            suitable = [each for each, value in vars(module).items() if self._is_offered(each, value, module)]
            others = nearest_name(name, suitable) or f"; it defines no {self.noun}"
            raise ConfigurationError(f"{where} has no {name!r}{others}") from error

    def _is_offered(self, name: str, value: Any, module: ModuleType) -> bool:
        """Whether a module's name is one of this sort that the module (or its package) defines itself."""
        if name.startswith("_") or isinstance(value, FunctionType | ModuleType):
            return False
        package = module.__name__.partition(".")[0]
        if isinstance(value, type) and value.__module__.partition(".")[0] != package:
            return False
        try:
            self.adopt(value)
        except (Exception, SystemExit):
            return False
        return True


@cache
def _modules_of(package: str) -> dict[str, str]:
    """Modules of a package by the names of what they declare."""
    if not package:
        return {}
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None, f"{package} is a package"
    found = pkgutil.iter_modules(spec.submodule_search_locations)
    return {info.name.replace("_", "-"): f"{package}.{info.name}" for info in found}


def _origin(entry: metadata.EntryPoint) -> str:
    return f"{entry.value} ({entry.dist.name})" if entry.dist is not None else entry.value


def _named_module(name: str) -> ModuleType:
    """The module of a name; where there is only a file of that name, it says how to name that.

    Raises:
        ConfigurationError: there is only such a file.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name or not Path(f"{name}.py").is_file():
            raise
        raise ConfigurationError(f"{error}; the file is {name}.py:NAME") from error


def is_of_file(module: str) -> bool:
    """Whether a module of this name is a file given by its path, which other processes must load before its names."""
    return module.startswith(_FILE_MODULE)


def load_file(path: Path) -> ModuleType:
    """The module that a file is; run once in a process.

    Raises:
        ConfigurationError: there is no such file, or it imports its neighbours.
    """
    if not path.is_file():
        raise ConfigurationError(f"no such file: {path}")
    name = f"{_FILE_MODULE}{path.resolve().as_posix().replace('/', '_').replace('.', '_')}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None, "it is a .py file"
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, ModuleNotFoundError) and _is_neighbour(error.name, path):
            folder = path.resolve().parent
            raise ConfigurationError(
                f"{error}: a file given by path cannot import other files of its folder; "
                f"set PYTHONPATH={folder}, or install the files as a package",
            ) from error
        raise
    return module


def _is_neighbour(name: str | None, path: Path) -> bool:
    """Whether a module that was not found lies beside a file."""
    first = path.resolve().with_name((name or "").partition(".")[0] or path.name)
    return first != path.resolve() and (first.with_name(f"{first.name}.py").is_file() or first.is_dir())
