"""Comparing rankers on live traffic and by human judgement."""
