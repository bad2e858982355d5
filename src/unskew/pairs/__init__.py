"""The objective of the paper: pairs of results, their loss, and the update of both biases."""
