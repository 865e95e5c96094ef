"""Entities as hypothesis draws them."""

import base64

from hypothesis import strategies as st

from lazulite.table.model import edm
from lazulite.table.model.row import Property

keys = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="/\\#?"), max_size=12)
names = st.from_regex(r"[A-Za-z_ôñ][A-Za-z0-9_ô]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("PartitionKey", "RowKey", "Timestamp")
)
_JSON: dict[edm.EdmType, st.SearchStrategy[edm.Json]] = {
    edm.STRING: st.one_of(
        st.text(max_size=20), st.sampled_from(['","x":"', "\\", '\\"', "a\\\\", 'Edm.Int64","', "x,"])
    ),
    edm.BOOLEAN: st.booleans(),
    edm.INT32: st.integers(-(2**31), 2**31 - 1),
    edm.INT64: st.integers(-(2**63), 2**63 - 1).map(str),
    edm.DOUBLE: st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["NaN", "Infinity"])),
    edm.DATETIME: st.integers(0, edm.DATETIME_MAX).map(edm.format_datetime),
    edm.GUID: st.uuids().map(str),
    edm.BINARY: st.binary(max_size=20).map(lambda value: base64.b64encode(value).decode()),
}


def _of(edm_type: edm.EdmType) -> st.SearchStrategy[Property]:
    return _JSON[edm_type].map(lambda value: Property(edm_type, edm_type.literal(value)))


properties = st.dictionaries(names, st.one_of(*map(_of, _JSON)), max_size=6)
