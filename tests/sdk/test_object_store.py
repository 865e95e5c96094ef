"""delta-rs and obstore, unmodified, in an environment of their own: both list from a name on, at a version of 2023."""

import re
from functools import cache
from pathlib import Path

import pytest

from .blob_clients import Account, connect, new_name
from .environment import cases_of, outcomes

HERE = Path(__file__).parent / "object_store"
REQUIREMENTS, PROGRAM = HERE / "deltalake-1.6.6.txt", HERE / "tables.py"


@cache
def outcomes_for(account: Account) -> dict[str, str | None]:
    """Run the program once for each account."""
    name = new_name()
    with connect(account) as service:
        service.create_container(name)
    return outcomes(REQUIREMENTS, PROGRAM, f"{account.connection_string.rstrip(';')};Container={name}")


@pytest.mark.parametrize("case", cases_of(PROGRAM))
def test_a_program_on_object_store(case: str, blob_account: Account) -> None:
    failure = outcomes_for(blob_account)[case]
    if failure:
        pytest.fail(failure, pytrace=False)


def test_every_package_is_pinned() -> None:
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    assert {"deltalake==1.6.6", "obstore==0.12.1"} <= set(lines)
