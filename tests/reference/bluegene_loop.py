"""Plain loops over the pseudocode of Aridor et al. 2005: slow, obvious, and written without the project's own modules.

Serves the property tests (every decision must agree) and the benchmark (what the compiled search is compared with).
"""

from functools import cache
from itertools import permutations, product

W14 = [
    "1.4>0.3", "2.2>0.5", "0.2>1.5", "1.2>3.5", "2.4>3.3", "4.2>2.5", "3.4>2.3",
    "3.2>5.5", "4.4>5.3", "6.2>4.5", "5.4>4.3", "5.2>7.5", "6.4>7.3", "7.2>6.5",
]  # fmt: skip
Y4 = ["0.2>1.5", "1.2>3.5", "3.2>2.5", "2.2>0.5"]


def ends(cable: str) -> tuple[int, int]:
    source, target = cable.split(">")
    return int(source.split(".")[0]), int(target.split(".")[0])


def cables_of(placement) -> list[tuple[int, tuple[int, ...], int]]:
    """Dimension, line (its coordinates in the other dimensions) and label of each cable that a placement holds."""
    return [
        (dimension, line, label)
        for dimension, labels in enumerate(placement.links)
        for line in product(*(axis for other, axis in enumerate(placement.members) if other != dimension))
        for label in labels
    ]


def link_sets(width: int, cables: list[str], members: frozenset[int], torus: bool) -> list[frozenset[int]]:
    """Link sets of a set of midplanes, smallest first: walk the line switch by switch, never twice over one."""
    if len(members) == 1:
        return [frozenset()]
    arcs = [(label, *ends(cable)) for label, cable in enumerate(cables)]
    found: set[frozenset[int]] = set()

    def walk(start: int, here: int, visited: frozenset[int], used: frozenset[int]) -> None:
        if members <= visited and not torus and here in members:
            found.add(used)
        for label, source, target in arcs:
            if source != here:
                continue
            if torus and target == start and members <= visited:
                found.add(used | {label})
            if target not in visited:
                walk(start, target, visited | {target}, used | {label})

    for start in members:
        walk(start, start, frozenset({start}), frozenset())
    return sorted(found, key=lambda labels: (len(labels), sorted(labels)))


@cache
def all_boxes(extents: tuple[int, ...]) -> list[frozenset[tuple[int, ...]]]:
    """The midplanes of all boxes of a machine, the largest first."""
    sides = [[range(low, high) for high in range(width + 1) for low in range(high)] for width in extents]
    return sorted((frozenset(product(*box)) for box in product(*sides)), key=len, reverse=True)


class LoopMachine:
    """A machine of cabled lines in plain Python sets.

    Args:
        lines: (width, cables) of each dimension.
    """

    def __init__(self, lines: list[tuple[int, list[str]]]) -> None:
        self.extents = [width for width, _ in lines]
        self.lines = lines
        self.taken_units: set[tuple[int, ...]] = set()
        self.taken_links: set[tuple[int, tuple[int, ...], int]] = set()
        self.jobs: dict[int, tuple[set[tuple[int, ...]], set[tuple[int, tuple[int, ...], int]]]] = {}
        self.tables: dict[tuple[int, frozenset[int], bool], list[frozenset[int]]] = {}

    def table(self, dimension: int, members: frozenset[int], torus: bool) -> list[frozenset[int]]:
        """The lookup table's entry, made when first asked for."""
        key = (dimension, members, torus)
        if key not in self.tables:
            self.tables[key] = link_sets(*self.lines[dimension], members, torus)
        return self.tables[key]

    def free_boxes(self, shape: tuple[int, ...], rotate: bool) -> list[list[range]]:
        """Phase 1: for all rotations, for all midplanes as lower left corner, is the box free?"""
        turned = list(dict.fromkeys(permutations(shape))) if rotate else [shape]
        boxes = []
        for extents in turned:
            for corner in product(*map(range, self.extents)):
                if any(low + size > limit for low, size, limit in zip(corner, extents, self.extents, strict=True)):
                    continue
                box = [range(low, low + size) for low, size in zip(corner, extents, strict=True)]
                if all(cell not in self.taken_units for cell in product(*box)):
                    boxes.append(box)
        return boxes

    def free_link_set(self, dimension: int, box: list[range], torus: bool) -> frozenset[int] | None:
        """Phase 2: the first link set of the table that is free on all participating lines."""
        others = [side for index, side in enumerate(box) if index != dimension]
        for labels in self.table(dimension, frozenset(box[dimension]), torus):
            if all((dimension, line, label) not in self.taken_links for line in product(*others) for label in labels):
                return labels
        return None

    def largest_free_box(self, box: list[range]) -> int:
        """Midplanes of the largest box, of all in the machine, that is free and stays so beside a box."""
        taken = self.taken_units | set(product(*box))
        return next((len(cells) for cells in all_boxes(tuple(self.extents)) if taken.isdisjoint(cells)), 0)

    def place(
        self, shape: tuple[int, ...], rotate: bool, torus: bool, by: str = "links"
    ) -> tuple[list[range], list[frozenset[int]], int] | None:
        """The candidate with the best merit, by default the fewest links over all lines; the first found of equals.

        By "corner" that with the lowest sum of lowest coordinates, by "fragmentation" that with the largest free box
        left; then that with the fewest links.
        """
        best = None
        best_key: tuple[int, int] | None = None
        for box in self.free_boxes(shape, rotate):
            chosen = []
            merit = 0
            for dimension in range(len(box)):
                labels = self.free_link_set(dimension, box, torus)
                if labels is None:
                    break
                chosen.append(labels)
                lines = 1
                for index, side in enumerate(box):
                    lines *= len(side) if index != dimension else 1
                merit += len(labels) * lines
            else:
                place = sum(side[0] for side in box) if by == "corner" else 0
                place = -self.largest_free_box(box) if by == "fragmentation" else place
                if best_key is None or (place, merit) < best_key:
                    best, best_key = (box, chosen, merit), (place, merit)
        return best

    def allocate(self, job: int, box: list[range], chosen: list[frozenset[int]]) -> None:
        units = set(product(*box))
        links = set()
        for dimension, labels in enumerate(chosen):
            others = [side for index, side in enumerate(box) if index != dimension]
            links |= {(dimension, line, label) for line in product(*others) for label in labels}
        self.jobs[job] = (units, links)
        self.taken_units |= units
        self.taken_links |= links

    def release(self, job: int) -> None:
        units, links = self.jobs.pop(job)
        self.taken_units -= units
        self.taken_links -= links
