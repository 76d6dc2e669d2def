"""Durations and moments as options of the command line; `ramp.client.times` reads them."""

from __future__ import annotations

from typing import Any

import click

from ramp.client.times import duration_of, parse_moment
from ramp.model.instant import Duration, Instant


class DurationType(click.ParamType[Duration]):
    """A duration on the command line, in microseconds; 0 only with `zero`."""

    name = "duration"

    def __init__(self, *, zero: bool = False) -> None:
        self._zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Duration:
        if isinstance(value, int):
            return value
        try:
            return duration_of(value, zero=self._zero)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class MomentType(click.ParamType[Instant]):
    """A moment on the command line: instant in microseconds."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Instant:
        from ramp.runtime.clock import SystemClock

        if isinstance(value, int):
            return value
        try:
            return parse_moment(value, SystemClock().now())
        except ValueError as error:
            self.fail(str(error), param, ctx)
