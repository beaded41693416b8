"""Flows to numbers: small pure functions on Polars frames, one subject per file.

Each function names the equation it follows, the unit of what goes in and comes out, and when its
result is null. None of them knows which file a flow came from or how its number will be drawn.
"""
