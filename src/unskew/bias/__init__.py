"""How much a position distorts a click; one estimator per file."""
