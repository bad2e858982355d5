"""Unbiased LambdaMART: boosted trees on the pairs of a log."""
