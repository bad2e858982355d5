"""The sections of a report, one file for each of its questions."""
