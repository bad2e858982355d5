"""The command line: parse, call, print. One file per command."""

from __future__ import annotations

from unskew.cli.app import app, main

__all__ = ["app", "main"]
