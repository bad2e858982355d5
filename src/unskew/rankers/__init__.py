"""Rankers: one folder each; what they share stands beside the folders."""
