"""Incidents of links, of tables of groups: when objectives were violated, for whom, and where they were.

`regroup.py` makes links, networks and wider intervals of hosts, `incidents.py` finds when something was
wrong, `signals.py` compares a link then with its usual state, `attribution.py` decides at which place the
incident was, and `held_back.py` what held flows back meanwhile.
"""
