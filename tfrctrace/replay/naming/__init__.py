"""Name the congestion control of a sender by predicting its window one step ahead.

`observations` makes growths and cuts of the rounds of a direction, `candidates` has what may have sent it,
`predict` how well each predicts them, `answer` those that are not beaten, and `of_trace` all that of the
directions of a trace.
"""
