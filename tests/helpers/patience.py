"""How long a test waits for another process, thread or page before it takes it for stuck.

Nothing waits for as long as this unless something is wrong, not even a machine that is ten times slower or
has twenty other processes to run.
"""

from typing import Final

PATIENCE_S: Final = 600
