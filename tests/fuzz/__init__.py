"""Damaged files of every kind: our own error, or a result that is right."""

import os

# Cases run in forked children: libraries that start threads when they are loaded must not.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
