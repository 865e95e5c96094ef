"""The lines that a client of the Table service signs; the vectors of reference §13.4 are in auth/test_shared_key.py."""

from lazulite.protocol.message import Request
from lazulite.table.canonicalize import table_string_to_sign

DATE = "Mon, 27 Jun 2016 15:25:14 GMT"


def test_what_is_signed() -> None:
    message = Request(
        "MERGE",
        "/a/T",
        headers={
            "content-length": "9",
            "content-md5": "m",
            "content-type": "t",
            "date": "d",
            "x-ms-date": DATE,
            "x-ms-version": "v",
        },
    )
    assert table_string_to_sign("SharedKey", message, "a", "/a/T", None) == f"MERGE\nm\nt\n{DATE}\n/a/a/T"
    assert table_string_to_sign("SharedKeyLite", message, "a", "/a/T", "acl") == f"{DATE}\n/a/a/T?comp=acl"


def test_the_date_header_stands_in_for_x_ms_date() -> None:
    message = Request("GET", "/a/T", headers={"date": "d"})
    assert table_string_to_sign("SharedKeyLite", message, "a", "/a/T", None) == "d\n/a/a/T"
