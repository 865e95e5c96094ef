"""The codes of the Table service: each has a meaning, and no other service has them."""

import subprocess
import sys

import pytest

from lazulite.protocol.errors import REASONS, ServiceError
from lazulite.table.errors import CODES, MESSAGE_AS_REASON


@pytest.mark.parametrize("code", CODES)
def test_every_table_code_has_a_status_with_a_reason_and_a_message(code: str) -> None:
    error = ServiceError(code)
    assert (error.status, error.message) == CODES[code]
    assert error.status in REASONS
    assert error.message


@pytest.mark.parametrize("module", ["lazulite.table", "lazulite.table.names"])
def test_any_module_of_the_table_service_registers_its_codes(module: str) -> None:
    program = f"""
from lazulite.protocol.errors import CATALOGUE
before = "TableNotFound" in CATALOGUE
import {module}
print(before, "TableNotFound" in CATALOGUE)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_codes_whose_message_is_the_reason_exist() -> None:
    for code in MESSAGE_AS_REASON:
        assert ServiceError(code).message
