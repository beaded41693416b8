"""The page of an audit: verdicts, incidents with their places, and each link over time."""
