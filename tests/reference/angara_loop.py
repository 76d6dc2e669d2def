"""Plain loops over the definitions of Mukosey et al. 2019: slow, obvious, and written without the project's modules.

Serves the property tests (every decision must agree) and the benchmark (what the compiled search is compared with).
Nodes are tuples of coordinates, boxes are (shape, origin, frozenset of nodes).
"""

from functools import cache
from itertools import product
from math import prod

Node = tuple[int, ...]
Box = tuple[tuple[int, ...], tuple[int, ...], frozenset[Node]]


@cache
def boxes(extents: tuple[int, ...], wrap: bool = True) -> list[Box]:
    """All boxes, by shape, then origin, each in lexicographic order."""
    found = []
    for shape in product(*[range(1, d + 1) for d in extents]):
        origins = [
            range(1) if p == d else range(d) if wrap else range(d - p + 1) for p, d in zip(shape, extents, strict=True)
        ]
        for origin in product(*origins):
            sides = [[(o + k) % d for k in range(p)] for o, p, d in zip(origin, shape, extents, strict=True)]
            found.append((shape, origin, frozenset(product(*sides))))
    return found


@cache
def mean_distance(shape: tuple[int, ...], extents: tuple[int, ...] | None = None) -> float:
    """Mean over all pairs; with extents, steps that wrap count where the box fills the ring."""
    nodes = list(product(*[range(p) for p in shape]))
    total = 0
    for u in nodes:
        for v in nodes:
            for i, p in enumerate(shape):
                gap = abs(u[i] - v[i])
                total += min(gap, p - gap) if extents is not None and p == extents[i] else gap
    pairs = len(nodes) * (len(nodes) - 1)
    return round(total / pairs, 12) if pairs else 0.0


@cache
def ranked(name: str, extents: tuple[int, ...], wrap: bool = True) -> list[Box]:
    """The boxes that an allocator gives out, in its order."""
    key = {
        "base": lambda box: (mean_distance(box[0]), len(box[2])),  # of equally near ones the smallest
        "base-no-wrap": lambda box: (mean_distance(box[0]), len(box[2])),
        "base-ring": lambda box: (mean_distance(box[0]), len(box[2])),
        "find-systems": lambda box: (prod(box[0]), mean_distance(box[0])),
        "find-systems-mss": lambda box: (prod(box[0]), mean_distance(box[0])),
        "torus-distance": lambda box: (mean_distance(box[0], extents), len(box[2])),
    }[name]
    chosen = boxes(extents, wrap)
    if name == "base-ring":
        chosen = [box for box in chosen if all(p == d or 2 * (p - 1) < d for p, d in zip(box[0], extents, strict=True))]
    return sorted(chosen, key=key)  # stable: equal keys keep the lexicographic order


def place(
    name: str, extents: tuple[int, ...], locked: frozenset[Node], size: int, *, transit: int | None, exact: bool = False
) -> Box | None:
    candidates = ranked(name, extents, wrap=name != "base-no-wrap")
    volumes = sorted({prod(box[0]) for box in candidates if prod(box[0]) >= size})
    most = volumes[0] + transit if transit is not None and volumes else prod(extents)
    variants = [box for box in candidates if size <= prod(box[0]) <= most and not box[2] & locked]
    if not variants or name != "find-systems-mss":
        return variants[0] if variants else None
    return max(variants, key=lambda box: phi(extents, locked | box[2], exact=exact))  # the first of equals


def greedy_boxes(extents: tuple[int, ...], locked: frozenset[Node]) -> list[frozenset[Node]]:
    """Find_MSSs as published: grow each free node not covered yet, in the order +x, -x, +y, ..."""
    found: list[frozenset[Node]] = []
    covered: set[Node] = set()
    for node in product(*[range(d) for d in extents]):
        if node in locked or node in covered:
            continue
        low, length = list(node), [1] * len(extents)

        def cells(low: list[int] = low, length: list[int] = length) -> set[Node]:
            return set(
                product(*[[(o + k) % d for k in range(p)] for o, p, d in zip(low, length, extents, strict=True)])
            )

        for axis, d in enumerate(extents):
            for step in (0, -1):
                while length[axis] < d:
                    low[axis] += step
                    length[axis] += 1
                    if cells() & locked:
                        low[axis] -= step
                        length[axis] -= 1
                        break
        found.append(frozenset(cells()))
        covered |= cells()
    return found


def maximal_boxes(extents: tuple[int, ...], locked: frozenset[Node]) -> list[frozenset[Node]]:
    """All free boxes that no other free box contains."""
    free = [box[2] for box in boxes(extents) if not box[2] & locked]
    return [one for one in free if not any(one < other for other in free)]


def phi(extents: tuple[int, ...], locked: frozenset[Node], *, exact: bool) -> int:
    """Nodes of the machine times size of the largest maximal boxes, plus how many are that large."""
    found = maximal_boxes(extents, locked) if exact else greedy_boxes(extents, locked)
    sizes = [len(box) for box in found]
    return prod(extents) * max(sizes) + sizes.count(max(sizes)) if sizes else 0


Link = tuple[Node, int]


def hop(node: Node, axis: int, step: int, extents: tuple[int, ...], failed: frozenset[Link]) -> Node | None:
    """The neighbour, or None where the cable has failed or the ring is a single node."""
    if extents[axis] == 1:
        return None
    there = tuple((c + step) % d if i == axis else c for i, (c, d) in enumerate(zip(node, extents, strict=True)))
    lower = node if step == 1 else there
    return None if (lower, axis) in failed else there


def reach(
    node: Node, inside: frozenset[Node], extents: tuple[int, ...], failed: frozenset[Link] = frozenset()
) -> set[Node]:
    """Where a packet gets inside the set: all upward directions first, then all downward, never both of one."""
    directions = [(axis, step) for step in (1, -1) for axis in range(len(extents))]
    found: set[Node] = set()

    def walk(here: Node, position: int, used: frozenset[int]) -> None:
        found.add(here)
        for next_position in range(position, len(directions)):
            axis, step = directions[next_position]
            if axis in used:
                continue
            there: Node | None = here
            for _ in range(extents[axis] - 1):
                there = hop(there, axis, step, extents, failed)
                if there is None or there not in inside:
                    break
                walk(there, next_position + 1, used | {axis})

    walk(node, 0, frozenset())
    return found


def reach_with_steps(
    node: Node, inside: frozenset[Node], extents: tuple[int, ...], failed: frozenset[Link] = frozenset()
) -> set[Node]:
    """The same with one hop anywhere before, and one after."""

    def around(nodes: set[Node]) -> set[Node]:
        hops = {
            hop(one, axis, step, extents, failed) for one in nodes for axis in range(len(extents)) for step in (1, -1)
        }
        return nodes | {one for one in hops if one is not None and one in inside}

    found: set[Node] = set()
    for begin in around({node}):
        found |= reach(begin, inside, extents, failed)
    return around(found)


def is_routable(nodes: frozenset[Node], extents: tuple[int, ...], failed: frozenset[Link] = frozenset()) -> bool:
    """Whether every pair has a route inside."""
    return all(nodes <= reach(node, nodes, extents, failed) for node in nodes)
