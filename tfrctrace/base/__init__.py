"""Ground floor that every room may import: errors, values with units, TOML, interruptible waiting."""
