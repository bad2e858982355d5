"""A linear ranker: the propensity-weighted ranking SVM."""
