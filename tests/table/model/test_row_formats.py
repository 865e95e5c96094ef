"""The row formats that were ever written: their bytes are literals here, and are read forever.

The bytes were written by the first version of the code that had each form. The history: `table/model/row.py`.
"""

import pytest

from lazulite.protocol.steps import finish
from lazulite.table.model.row import DecodedRow, assemble, decode_row, encode_keys, etag_of, stored_etag, ticks_of
from lazulite.table.payload.json_pattern import TablePatterns
from lazulite.table.payload.json_reader import read_encoded, read_entity
from lazulite.table.service import TABLES_SPACE

TICKS = 132_853_932_334_139_140
KEYS = "p 'é'", 'r,"1"'
BODY = """{
    "Text": "tab\\t, quote \\", backslash \\\\, é中\\ud83d\\ude00",
    "Active": true,
    "Count": -23,
    "Id@odata.type": "Edm.Int64", "Id": "9007199254740993",
    "Ratio": 0.1,
    "Limit@odata.type": "Edm.Double", "Limit": "Infinity",
    "Seen@odata.type": "Edm.DateTime", "Seen": "2024-02-29T12:34:56.7890000Z",
    "Key@odata.type": "Edm.Guid", "Key": "C9DA6455-213D-42C9-9A79-3E9149A57833",
    "Bytes@odata.type": "Edm.Binary", "Bytes": "AQID/w==",
    "Été": 1E-7
}""".encode()
"""An entity of every type, its properties in no order."""

AS_SENT = bytes.fromhex(
    "0101d7fdf293ca4704226f646174612e65746167223a22572f5c226461746574696d6527323032312d31322d333154303325"
    "3341303025334133332e3431333931345a275c22222c22506172746974696f6e4b6579223a227020275c753030653927222c"
    "22526f774b6579223a22722c5c22315c22222c2254696d657374616d70223a22323032312d31322d33315430333a30303a33"
    "332e3431333931345a222c2254657874223a227461625c742c2071756f7465205c222c206261636b736c617368205c5c2c20"
    "5c75303065395c75346532645c75643833645c7564653030222c22416374697665223a747275652c22436f756e74223a2d32"
    "332c224964406f646174612e74797065223a2245646d2e496e743634222c224964223a223930303731393932353437343039"
    "3933222c22526174696f223a302e312c224c696d6974406f646174612e74797065223a2245646d2e446f75626c65222c224c"
    "696d6974223a22496e66696e697479222c225365656e406f646174612e74797065223a2245646d2e4461746554696d65222c"
    "225365656e223a22323032342d30322d32395431323a33343a35362e3738395a222c224b6579406f646174612e7479706522"
    "3a2245646d2e47756964222c224b6579223a2263396461363435352d323133642d343263392d396137392d33653931343961"
    "3537383333222c224279746573406f646174612e74797065223a2245646d2e42696e617279222c224279746573223a224151"
    "49442f773d3d222c225c7530306339745c7530306539223a31452d3037"
)
"""Format 1, the properties as sent: inserted entities; before 2026-11-21 all entities."""

BY_NAME = bytes.fromhex(
    "0101d7fdf293ca4704226f646174612e65746167223a22572f5c226461746574696d6527323032312d31322d333154303325"
    "3341303025334133332e3431333931345a275c22222c22506172746974696f6e4b6579223a227020275c753030653927222c"
    "22526f774b6579223a22722c5c22315c22222c2254696d657374616d70223a22323032312d31322d33315430333a30303a33"
    "332e3431333931345a222c22416374697665223a747275652c224279746573406f646174612e74797065223a2245646d2e42"
    "696e617279222c224279746573223a22415149442f773d3d222c22436f756e74223a2d32332c224964406f646174612e7479"
    "7065223a2245646d2e496e743634222c224964223a2239303037313939323534373430393933222c224b6579406f64617461"
    "2e74797065223a2245646d2e47756964222c224b6579223a2263396461363435352d323133642d343263392d396137392d33"
    "6539313439613537383333222c224c696d6974406f646174612e74797065223a2245646d2e446f75626c65222c224c696d69"
    "74223a22496e66696e697479222c22526174696f223a302e312c225365656e406f646174612e74797065223a2245646d2e44"
    "61746554696d65222c225365656e223a22323032342d30322d32395431323a33343a35362e3738395a222c2254657874223a"
    "227461625c742c2071756f7465205c222c206261636b736c617368205c5c2c205c75303065395c75346532645c7564383364"
    "5c7564653030222c225c7530306339745c7530306539223a31452d3037"
)
"""Format 1, the properties by name: replaced and merged entities since 2026-11-21."""

FORMS = {False: AS_SENT, True: BY_NAME}


@pytest.mark.parametrize("by_name", FORMS)
def test_a_row_of_each_form_is_read(by_name: bool) -> None:
    value = FORMS[by_name]
    row = decode_row(value)
    properties = finish(read_entity(BODY)).properties
    assert row == DecodedRow(*KEYS, TICKS, properties)
    assert list(row.properties) == (sorted(properties) if by_name else list(properties))
    assert (ticks_of(value), stored_etag(value)) == (TICKS, etag_of(TICKS))


@pytest.mark.parametrize("by_name", FORMS)
def test_a_row_of_each_form_is_written_to_the_byte(by_name: bool) -> None:
    members = finish(read_encoded(BODY, by_name, TablePatterns())).members
    assert assemble(TICKS, encode_keys(*KEYS), members) == FORMS[by_name]


@pytest.mark.parametrize("by_name", FORMS)
def test_a_row_of_each_form_is_whole_to_a_check(by_name: bool) -> None:
    assert TABLES_SPACE.catalog is not None
    TABLES_SPACE.catalog.verify(KEYS, FORMS[by_name], TICKS)


@pytest.mark.parametrize("format_number", [0, 2, 255])
def test_a_row_of_another_format_is_not_read(format_number: int) -> None:
    value = bytes([format_number]) + AS_SENT[1:]
    for read in (decode_row, ticks_of, stored_etag):
        with pytest.raises(AssertionError, match="format"):
            read(value)
