"""A click log becomes Impressions."""
