"""The click model ranker: boosted trees on the likelihood of the clicks."""
