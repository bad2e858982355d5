# %% [markdown]
# # A real log: hotel searches at Expedia
#
# 1,409 searches, a third of them shown in random order. That third says how far people look down
# the list, whatever stands there; so the estimates from the other two thirds can be checked, which
# a real log seldom allows. The data is a part of Kaggle's "Personalize Expedia Hotel Searches"
# (ICDM 2013) and does not come with Unskew: give the path of the CSV file,
# `python examples/expedia.py searches.csv.gz`, or set `UNSKEW_DATA` to the folder that holds
# `expedia/searches.csv.gz`.

# %%
import os
import sys
from pathlib import Path

import unskew

default = Path(os.environ.get("UNSKEW_DATA", "../shared/data")) / "expedia" / "searches.csv.gz"
log = Path(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].endswith(".gz") else default
if not log.exists():
    raise SystemExit(f"{log} is not there: give the path of searches.csv.gz")

# %% [markdown]
# ## Read it
#
# A search is a session of its own; `random_bool` is the context. What happened after the click
# (`booking_bool`, `gross_bookings_usd`) knows the outcome and must not be a feature.

# %%
columns = {
    "session": "srch_id",
    "query": "srch_id",
    "doc": "prop_id",
    "click": "click_bool",
    "context": "random_bool",
    "ignore": ["booking_bool", "gross_bookings_usd", "date_time", "source"],
}
data = unskew.read_log(str(log), **columns, progress=False)
print(data)
assert data.n_sessions == 1_409

# %% [markdown]
# ## The curve, and its interval
#
# In the shuffled searches the click rate falls with the position for one reason only.

# %%
shuffled = unskew.bias.Randomization(context=1)
measured = unskew.bias.bootstrap_bias(shuffled, data, seed=0)
print(measured)
measured  # in a notebook, the picture

# %% [markdown]
# ## What the other searches say
#
# Regression-EM never looks at the shuffled third. Does it find the same curve?

# %%
estimated = unskew.bias.RegressionEM().fit(data.in_context(0))
for k in (1, 2, 5, 9):
    print(
        f"position {k + 1}: measured {measured.t_plus[k]:.2f}, estimated {estimated.t_plus[k]:.2f}"
    )

# %% [markdown]
# ## Train, and decide
#
# Half of the searches teach. Of the other half, those in Expedia's own order judge: beating a
# shuffled list would be no feat. The bias is the one that was measured.

# %%
import duckdb

halves = [
    unskew.read_log(
        duckdb.sql(f"SELECT * FROM read_csv('{log}') WHERE srch_id % 2 = {half}"),
        **columns,
        progress=False,
    )
    for half in (0, 1)
]
ranker = unskew.fit(halves[0], debias=measured, trials=6, random_state=0, verbose=0)
print(ranker.choice_)

# %%
page = unskew.report({"new": ranker}, halves[1].in_context(0), bias=measured, out="expedia.html")
print(page.answer.sentence)
page  # in a notebook, the report itself

# %% [markdown]
# Open `expedia.html`. The interval does not know how uncertain the bias is, and it was measured on
# 456 searches: the honest decision is an A/B test, and `unskew ab plan` says how long.
