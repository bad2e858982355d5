"""Click models fitted to a log: likelihoods, their EM, and what came out."""
