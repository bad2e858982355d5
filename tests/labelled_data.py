"""Small labelled data for tests."""

from __future__ import annotations

import numpy as np

from unskew.log.features import Features
from unskew.log.labelled import LabelledData


def make_data(*, n_queries=40, docs=12, n_features=6, seed=0, max_grade=4, strings=False):
    """Labelled data whose grade is a noisy linear function of the features."""
    rng = np.random.default_rng(seed)
    n = n_queries * docs
    values = rng.normal(size=(n, n_features))
    weight = rng.normal(size=n_features)
    latent = values @ weight / np.linalg.norm(weight) + rng.normal(scale=0.3, size=n)
    bounds = np.quantile(latent, np.linspace(0, 1, max_grade + 2)[1:-1])
    query = np.repeat(np.arange(n_queries), docs)
    doc = np.arange(n)
    if strings:
        query = np.array([f"q{q}" for q in query])
        doc = np.array([f"doc-{d}" for d in doc])
    names = tuple(f"f{i}" for i in range(n_features))
    grade = np.digitize(latent, bounds).astype(float)
    return LabelledData(Features(values.astype(np.float32), names), grade, query, doc)
