"""The peak memory of this process."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

__all__ = ["peak_bytes"]

_STATUS = Path("/proc/self/status")


def peak_bytes() -> int:
    """The most memory this process ever had.

    On Linux the kernel's own mark of this program is read: what `getrusage` reports begins with the
    memory of the process that started it.
    """
    if _STATUS.is_file():
        found = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
        if found:
            return int(found.group(1)) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)
