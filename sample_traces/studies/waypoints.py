"""Random waypoints for `adhoc.tcl`: where the nodes of an ad hoc network begin, and where they go."""

from __future__ import annotations

import random
from functools import cache
from itertools import count
from math import dist

REACH_M = 250
"""Of ns-2's radios."""
MOST_LEGS = 60

Point = tuple[float, float]


@cache
def connected_placement(nodes: int, side_m: int, number: int) -> int:
    """Return the seed of the placement of this number in which nodes 0 and 1 reach those they send to."""
    seeds = (seed for seed in count(1) if _is_connected(_points(seed, nodes, side_m, 1)))
    return [next(seeds) for _ in range(number)][-1]


def receiver_of(sender: int, nodes: int) -> int:
    """Return the node that `sender` sends to."""
    return sender + nodes // 2


def ways(seed: int, nodes: int, side_m: int, speed: float, pause_s: float, until_s: float) -> str:  # noqa: PLR0917
    """Return what each node does: it goes on when it is there and its pause is over."""
    written = []
    for points in _points(seed, nodes, side_m, MOST_LEGS if speed else 1):
        here, now = points[0], pause_s
        words = [f"{here[0]:.3f} {here[1]:.3f}"]
        for there in points[1:]:
            if now >= until_s:
                break
            words.append(f"{{{now:.3f} {there[0]:.3f} {there[1]:.3f}}}")
            now += dist(here, there) / speed + pause_s
            here = there
        written.append("{" + " ".join(words) + "}")
    return " ".join(written)


def _points(seed: int, nodes: int, side_m: int, legs: int) -> list[list[Point]]:
    """Draw the points of each node, which are the same for any number of legs."""
    draws = [random.Random(seed * 100 + node) for node in range(nodes)]
    return [
        [(draw.uniform(1, side_m - 1), draw.uniform(1, side_m - 1)) for _ in range(legs)] for draw in draws
    ]


def _is_connected(points: list[list[Point]]) -> bool:
    starts = [legs[0] for legs in points]
    return all(receiver_of(sender, len(starts)) in _reached(starts, sender) for sender in (0, 1))


def _reached(starts: list[Point], node: int) -> set[int]:
    """Return the nodes to which a path leads from `node`."""
    found, edge = {node}, {node}
    while edge:
        near = {b for a in edge for b in range(len(starts)) if dist(starts[a], starts[b]) < REACH_M}
        edge = near - found
        found |= edge
    return found
