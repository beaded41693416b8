"""Where a TCP sender departs from its specification.

`rules` has each rule with its source, `windows` what losses leave of a window and how it grows, `limits` what
holds for every congestion control, and `tcp_findings` all that of the directions of a trace.
"""
