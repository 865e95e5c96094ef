import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.table.names import (
    check_addressed_key,
    check_addressed_table,
    check_new_key,
    check_property_name,
    check_table_name,
)


@pytest.mark.parametrize("name", ["abc", "A1b2", "a" * 63])
def test_good_table_names(name: str) -> None:
    check_table_name(name)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("1abc", "InvalidResourceName"),
        ("a_b", "InvalidResourceName"),
        ("täble", "InvalidResourceName"),
        ("tables", "InvalidResourceName"),
        ("Tables", "InvalidResourceName"),
        ("abc\n", "InvalidResourceName"),
        ("$MetricsX", "InvalidResourceName"),
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
    ],
)
def test_bad_table_names(name: str, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        check_table_name(name)
    assert caught.value.code == code


def test_system_tables_may_be_addressed() -> None:
    check_addressed_table("$MetricsHourPrimaryTransactionsTable")


@pytest.mark.parametrize("name", ["A", "_x", "ÄÖ", "名前", "a" * 255])
def test_good_property_names(name: str) -> None:
    check_property_name(name)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "PropertyNameInvalid"),
        ("a-b", "PropertyNameInvalid"),
        ("a.b", "PropertyNameInvalid"),
        ("1a", "PropertyNameInvalid"),
        ("a b", "PropertyNameInvalid"),
        ("µ", "PropertyNameInvalid"),
        ("aª", "PropertyNameInvalid"),
        ("\U0001d4b3", "PropertyNameInvalid"),
        ("a" * 256, "PropertyNameTooLong"),
    ],
)
def test_bad_property_names(name: str, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        check_property_name(name)
    assert caught.value.code == code


@pytest.mark.parametrize("character", ["/", "\\", "#", "?", "\0", "\x1f", "\x7f", "\x9f", "\ud800"])
def test_characters_forbidden_in_keys(character: str) -> None:
    with pytest.raises(ServiceError) as caught:
        check_new_key("RowKey", f"a{character}b")
    assert caught.value.code == "OutOfRangeInput"
    assert caught.value.message.startswith("The 'RowKey' parameter of value 'a")
    with pytest.raises(ServiceError) as caught:
        check_addressed_key(f"a{character}b")
    assert caught.value.code == "InvalidInput"


@pytest.mark.parametrize("key", ["", "%", "+&,' \u00a0", "a" * 1024, "\U0001f600" * 512])
def test_good_keys(key: str) -> None:
    check_new_key("PartitionKey", key)
    check_addressed_key(key)


@pytest.mark.parametrize("key", ["a" * 1025, "\U0001f600" * 513])
def test_keys_too_long(key: str) -> None:
    with pytest.raises(ServiceError, match="KeyValueTooLarge"):
        check_new_key("RowKey", key)
    with pytest.raises(ServiceError, match="KeyValueTooLarge"):
        check_addressed_key(key)


@pytest.mark.parametrize(("key", "code"), [("a" * 70_000 + "/", "KeyValueTooLarge"), ("/" * 70_000, "OutOfRangeInput")])
def test_a_bounded_part_of_a_key_is_looked_at_and_shown(key: str, code: str) -> None:
    with pytest.raises(ServiceError, match=code) as caught:
        check_new_key("PartitionKey", key)
    assert len(caught.value.message) < 70_000
