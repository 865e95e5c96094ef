"""Keys of every length and kind, many of them in the same group of long ones."""

from hypothesis import strategies as st

_LONG = ["é" * 634, "é" * 633 + "ee", "中" * 422 + "éé", "中" * 422 + "éé中", "z" * 1268]
"""Of about as many bytes as a prefix has, in CESU-8."""

odd_texts = st.one_of(
    st.text(max_size=3),
    st.builds(
        lambda start, end: start + end,
        st.sampled_from(_LONG),
        st.text(st.sampled_from(["\0", "a", "é", "中", "\ue000", "\U0001f600"]), max_size=3),
    ),
)
