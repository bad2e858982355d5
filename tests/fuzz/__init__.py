"""Damaged files of every kind: our own error, or a result that is right."""
