"""Advice on the keys of a table: queries and writes, the nine steps of the study, and what keys do.

Pure functions but for `observed`, which reads lines of logs. `advice.advise` is the whole procedure.
"""
