"""Names of queues and containers."""

import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.resource_names import check_resource_name


@pytest.mark.parametrize("name", ["abc", "a-b", "0a0", "a" * 63])
def test_a_name_of_letters_digits_and_single_hyphens_is_right(name: str) -> None:
    check_resource_name(name)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("Abc", "InvalidResourceName"),
        ("a--b", "InvalidResourceName"),
        ("-ab", "InvalidResourceName"),
        ("ab-", "InvalidResourceName"),
        ("ab\n", "InvalidResourceName"),
        ("\u0661\u0662\u0663", "InvalidResourceName"),
        ("a" * 1025, "OutOfRangeInput"),
    ],
)
def test_another_name_is_rejected(name: str, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        check_resource_name(name)
    assert caught.value.code == code
