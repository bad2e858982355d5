"""Choosing from clicks alone: rankers and settings, and what a log is good for."""
