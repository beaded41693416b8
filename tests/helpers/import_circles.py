"""Circles of imports."""

from graphlib import CycleError, TopologicalSorter


def circle_of(imports):
    """Return a circle of imports as text, or None."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return " -> ".join(error.args[1])
    return None
