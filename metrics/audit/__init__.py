"""Incidents of links, of tables of groups: when objectives were violated, for whom, and where the cause is.

`regroup.py` makes links, networks and wider intervals of hosts, `incidents.py` finds when something was
wrong, `signals.py` compares a link then with its usual state, `attribution.py` decides where the cause is.
"""
