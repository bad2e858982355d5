"""The report on a log and its rankers, and the page that everything here is shown on.

The folder is not called ``report`` because `unskew.report` is the function.
"""
