"""Side-by-side judging: a web page for assessors, and what their answers say."""
