"""Rankers: each learns from Impressions and a bias estimate."""
