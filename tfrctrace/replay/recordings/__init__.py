"""Recordings that drive algorithms: one per flow, made of reports or of losses and round-trip times."""
