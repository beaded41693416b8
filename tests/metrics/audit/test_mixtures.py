"""Delays of a link that are only those of hosts that are always far, by medians of all drawn samples."""

from random import Random
from statistics import median

import polars as pl
import pytest

from tfrctrace.gate.objective import parse_objective
from tfrctrace.metrics.audit.mixtures import hosts_beyond, is_mixture
from tfrctrace.metrics.audit.states import State

LINK = parse_objective({"require": "median(rtt_ms) < 100 ms", "by": "link", "every": "5min"})
SUM = parse_objective({"require": "sum(requests_unanswered) / sum(requests) < 20 %", "by": "link"})
HOSTS = parse_objective({"require": "p95(rtt_ms) < 250 ms", "by": "host", "every": "10min"})


def state(objective: int, group: str | None, value: float) -> State:
    return State(objective, group, intervals=100, violated=100, value=value, first_ns=0, last_ns=1)


def evidence(samples: dict[str, list[float]]) -> pl.DataFrame:
    """Return what an audit knows of hosts that received data with these round-trip times."""
    rows = [
        {"group": host, "direction": "received", "rtt_samples": len(own), "rtt_p50_ms": median(own)}
        for host, own in samples.items()
        if own
    ]
    # all that far hosts received was sent by servers, which shows in their rows again
    rows.append({"group": "server", "direction": "sent", "rtt_samples": 99, "rtt_p50_ms": 360.0})
    return pl.DataFrame(rows)


def drawn(chance: Random, usual_ms: float, n: int) -> list[float]:
    return [usual_ms * chance.uniform(0.95, 1.05) for _ in range(n)]


@pytest.mark.parametrize("seed", range(20))
def test_a_link_is_a_mixture_if_all_samples_but_those_of_far_hosts_keep_the_limit(seed):
    chance = Random(seed)
    fault_ms = chance.choice([0, 0, 150])
    others = {
        f"near{n}": drawn(chance, chance.uniform(2, 40) + fault_ms, chance.randrange(1, 30)) for n in range(5)
    }
    far = {"far": drawn(chance, 360, 200)}
    link = median(value for own in (others | far).values() for value in own)
    alone = median(value for own in others.values() for value in own)
    assert link > 100
    found = is_mixture(LINK, evidence(others | far), {"far"})
    assert found == (alone < 100) == (fault_ms == 0)


def test_a_link_that_only_far_hosts_use_is_judged_by_them():
    assert is_mixture(LINK, evidence({"far": [360.0] * 50}), {"far"})


def test_far_hosts_without_a_sample_explain_nothing():
    assert not is_mixture(LINK, evidence({"near": [150.0] * 50}), {"far"})


def test_only_hosts_whose_usual_delay_is_beyond_the_limit_explain_the_median_of_a_link():
    states = [
        state(1, "far", 360.0),
        state(1, "within", 90.0),
        state(0, None, 400.0),
        state(2, "slow", 400.0),
    ]
    objectives = (LINK, HOSTS, SUM)
    assert hosts_beyond(LINK, states, objectives) == {"far"}
    assert hosts_beyond(SUM, states, objectives) == hosts_beyond(HOSTS, states, objectives) == set()
