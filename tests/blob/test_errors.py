"""The codes of the Blob service: each has a meaning, and own texts are those of known codes."""

import subprocess
import sys

import pytest

from lazulite.blob.errors import CODES, CONTAINER_MESSAGES, MESSAGES
from lazulite.blob.model import lease
from lazulite.protocol.errors import CATALOGUE, REASONS, ServiceError


@pytest.mark.parametrize("code", CODES)
def test_every_blob_code_has_a_status_with_a_reason_and_a_message(code: str) -> None:
    error = ServiceError(code)
    assert (error.status, error.message) == CODES[code]
    assert error.status in REASONS
    assert error.message


def test_codes_are_in_the_order_of_their_names() -> None:
    assert list(CODES) == sorted(CODES)


def test_own_texts_differ_from_the_catalogues() -> None:
    assert not MESSAGES.keys() & CODES.keys()
    assert CONTAINER_MESSAGES.keys() <= CODES.keys()
    assert all(text != CATALOGUE[code][1] for code, text in [*MESSAGES.items(), *CONTAINER_MESSAGES.items()])


@pytest.mark.parametrize("code", [lease.LEASE_ALREADY_PRESENT, lease.IS_BROKEN, lease.MISMATCH, lease.NOT_PRESENT])
def test_codes_of_lease_operations_are_registered(code: str) -> None:
    assert ServiceError(code).status == 409


@pytest.mark.parametrize("resource", ["Blob", "Container"])
@pytest.mark.parametrize("beginning", ["LeaseIdMismatchWith", "LeaseNotPresentWith"])
def test_codes_of_other_operations_are_registered(beginning: str, resource: str) -> None:
    assert ServiceError(f"{beginning}{resource}Operation").status == 412


def test_any_module_of_the_blob_service_registers_its_codes() -> None:
    program = """
from lazulite.protocol.errors import CATALOGUE
before = "BlobNotFound" in CATALOGUE
import lazulite.blob.model.lease
print(before, "BlobNotFound" in CATALOGUE)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
