"""A click log becomes Impressions.

In reading order:

schema              the columns of a valid log, and every kind of problem with its remedy
sources             files, frames, streams and databases, each as one table to scan
columns, keys       how each column is read; how keys become codes and codes become keys
sessions            the table streamed in batches of whole sessions (read_ahead: by a thread)
coding              a batch of columns becomes codes and numbers
compact             distinct documents, pages and patterns (kernels: grouping, interning)
problems            why sessions were left out
impressions         the three tables that come out (features: those of the documents)
read, attach        `read_log` from a source to Impressions; features from a second table
arrays, matrix      the same from plain arrays and data frames
inspection, counts  what a log holds; impressions and clicks of pages
saved               Impressions on disk and back
labelled, letor     documents with relevance grades, and their text format
grades              what a grade and a rank are worth in DCG
"""

from typing import TYPE_CHECKING

from unskew.lazy import lazy_names

if TYPE_CHECKING:
    from unskew.log.counts import Counts as Counts
    from unskew.log.counts import count_statistics as count_statistics

__all__, __getattr__, __dir__ = lazy_names(__name__)
