"""PyTorch, loaded when it is needed, and the device it computes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from unskew.errors import MissingDependencyError, UsageError


def pytorch(purpose: str = "NeuralRanker") -> Any:
    """The module torch, or an error with the install line."""
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingDependencyError("PyTorch", "neural", purpose) from error


def safetensors(purpose: str = "NeuralRanker") -> Any:
    """The module safetensors.torch, or an error with the install line."""
    pytorch(purpose)
    try:
        return import_module("safetensors.torch")
    except ImportError as error:
        raise MissingDependencyError("safetensors", "neural", purpose) from error


def device_of(name: str) -> Any:
    """The device of that name; "auto" is a GPU if there is one."""
    torch = pytorch()
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise UsageError(f'device must be "auto", "cpu" or "cuda", got {name!r}') from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError('device="cuda", but this machine has no GPU that PyTorch can use')
    return device


@contextmanager
def pytorch_threads(number: int | None) -> Iterator[None]:
    """Let PyTorch compute on so many threads for a while; None leaves the number as it is."""
    torch = pytorch()
    before = torch.get_num_threads()
    if number is not None:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
