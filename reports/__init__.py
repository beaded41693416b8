"""From numbers to something that a person or a machine reads.

`model` decides what a report says; `html`, `text` and `tables` only write it down, and `output` puts it
where it belongs. Nothing here computes a result or knows which bytes it came from.
"""
