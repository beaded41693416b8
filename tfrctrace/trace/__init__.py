"""A trace opened: its passes over the inputs, its tables and labels, and what a report needs of it."""
