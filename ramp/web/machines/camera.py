"""Where one stands to see all of a machine, and no further away than that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from ramp.web.machines.torus_map import Point

VIEW_DEGREES: Final = 40.0
"""The camera's vertical field of view: boxes at the far end are not much smaller than those in front."""

TOWARDS: Final[Point] = (-0.35, -0.75, 0.45)
"""From the middle of the machine to the camera: in front, a little to the left, and above."""

FILLED: Final = 0.9
"""Share of the picture's width or height that the machine takes."""


@dataclass(frozen=True, slots=True)
class Camera:
    """Where the camera is, and the point that it looks at."""

    at: Point
    looks_at: Point


def camera_for(low: Point, high: Point, aspect: float) -> Camera:
    """The nearest camera in the usual direction that has a whole box in its picture.

    Args:
        low: the box's corner with the least coordinates.
        high: the corner opposite.
        aspect: width of the picture by its height.
    """
    least, most = np.array(low), np.array(high)
    middle = (least + most) / 2
    back = np.array(TOWARDS) / np.linalg.norm(TOWARDS)
    right = np.cross((0.0, 0.0, 1.0), back)
    right /= np.linalg.norm(right)
    up = np.cross(back, right)
    signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners = signs * (most - least) / 2
    half = math.tan(math.radians(VIEW_DEGREES) / 2) * FILLED
    # a corner is seen where its offset is at most `half` (times the aspect, sideways) of its distance along the view
    needed = corners @ back + np.maximum(np.abs(corners @ right) / aspect, np.abs(corners @ up)) / half
    at = middle + back * needed.max()
    return Camera((float(at[0]), float(at[1]), float(at[2])), (float(middle[0]), float(middle[1]), float(middle[2])))
