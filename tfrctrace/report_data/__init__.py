"""What a report shows of a trace: gathered within limits, under names that can be shared, and drawn once."""
