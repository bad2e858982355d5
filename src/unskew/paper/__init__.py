"""The paper's experiments: every table and figure as something that can be run and drawn again.

A *world* is labelled data with simulated clicks on it. A *run* trains one ranker with one treatment
of the clicks in one world and leaves one row of results. An *experiment* (a table or a figure) names
the runs it needs and draws itself from their rows.
"""
