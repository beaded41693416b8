"""MTFRC's model of the 802.11 MAC: frame durations, contention, and the capacity of each station.

`rates` has frame durations, `cell` the constants of a network, `contention` collisions and waiting times,
`capacity` X_m and X_t, `mtfrc` X_fair and X_send. `scenario` reads the stations over time from a file. The
equations are from [Z], the paper of Zhang et al. on MTFRC (WoWMoM 2008), based on [H], M. Heusse et al.,
"Performance anomaly of 802.11b" (INFOCOM 2003).

Times are µs, rates of frames Mb/s (which is bit/µs), results bit/s.
"""
