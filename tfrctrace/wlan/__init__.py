"""The 802.11 MAC as MTFRC sees it: how long frames take, how stations contend, what each may send.

From `rates` (how long one frame is in the air) over `cell` (the constants of one network) and `contention`
(collisions and waiting) to `capacity` (X_m and X_t) and `mtfrc` (X_fair and X_send). `scenario` reads who is
there, and when, from a file. The equations are those of [Z], the paper of Zhang et al. on MTFRC
(WoWMoM 2008), after [H], M. Heusse et al., "Performance anomaly of 802.11b" (INFOCOM 2003).

Times are µs, rates of frames Mb/s (which is bit/µs), results bit/s.
"""
