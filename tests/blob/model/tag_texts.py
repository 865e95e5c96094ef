"""Hypothesis strategies of tags."""

import string

from hypothesis import strategies as st

CHARACTERS = string.ascii_letters + string.digits + " +-./:=_"
NAMES = st.text(CHARACTERS, min_size=1, max_size=128)
VALUES = st.text(CHARACTERS, max_size=256)
TAGS = st.dictionaries(NAMES, VALUES, max_size=10)
