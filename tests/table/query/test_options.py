import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.table.query.options import read_select, read_top, reject_unknown_options


@pytest.mark.parametrize(("text", "top"), [(None, 1000), ("0", 0), ("1", 1), ("1000", 1000), ("+5", 5)])
def test_top(text: str | None, top: int) -> None:
    assert read_top({} if text is None else {"$top": text}) == top


@pytest.mark.parametrize("text", ["1001", "-2", "x", "", "1.0", "9" * 30, "٣"])
def test_top_rejected(text: str) -> None:
    with pytest.raises(ServiceError, match="InvalidInput"):
        read_top({"$top": text})


@pytest.mark.parametrize(
    ("text", "names"),
    [("", None), (" ", None), ("*", None), ("a,*", None), ("a", ["a"]), (" a , b ", ["a", "b"])],
)
def test_select(text: str, names: list[str] | None) -> None:
    assert read_select({"$select": text}) == names
    assert read_select({}) is None


@pytest.mark.parametrize("text", [",", "a,", "a,,b", ",".join("x" * 256), "x" * 256])
def test_select_rejected(text: str) -> None:
    with pytest.raises(ServiceError, match="InvalidInput"):
        read_select({"$select": text})


@pytest.mark.parametrize("option", ["$orderby", "$skip", "$inlinecount", "$expand", "$count"])
def test_options_that_are_not_there(option: str) -> None:
    reject_unknown_options({"$filter": "", "unknown": "x"})
    with pytest.raises(ServiceError) as caught:
        reject_unknown_options({option: "x"})
    assert (caught.value.status, caught.value.code) == (501, "NotImplemented")
