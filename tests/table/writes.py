"""Writes of one entity, and one that is stored."""

from hypothesis import strategies as st

from lazulite.table.model.edm import INT32, STRING
from lazulite.table.model.row import Property, assemble, encode_keys, encode_properties, etag_of, in_order
from lazulite.table.operations.write_decisions import WRITES, EntityWrite

NOW = 10**17
STORED = assemble(NOW, encode_keys("p", "r"), encode_properties({"A": Property(INT32, "1")}))

properties = st.dictionaries(
    st.sampled_from(["A", "B", "é"]),
    st.sampled_from([Property(INT32, "7"), Property(STRING, '"x"'), Property(STRING, f'"{"x" * 33_000}"')]),
)
conditions = st.sampled_from([None, "*", etag_of(NOW), etag_of(NOW + 1)])


@st.composite
def writes(draw: st.DrawFn, row: str) -> EntityWrite:
    some = draw(properties)
    kind, condition = draw(st.sampled_from(WRITES)), draw(conditions)
    return EntityWrite(kind, "p", row, condition, encode_keys("p", row), encode_properties(in_order(some)))
