"""What is read of a trace: passes over its inputs, tables, labels and groups, and what they measure."""
