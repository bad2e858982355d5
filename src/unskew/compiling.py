"""How kernels are compiled that only other kernels call."""

from __future__ import annotations

from typing import Any

# Numba's options for them: nothing is compiled that would let Python call them, which is a quarter of
# the time that the first run of a command takes.
INNER: dict[str, Any] = {
    "cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True,
}  # fmt: skip
