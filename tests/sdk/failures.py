"""How the SDK tests look at a refusal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError


def code_of(error: HttpResponseError) -> str:
    """The service's error code, wherever the SDK left it.

    `create_entity` raises the undecoded error, whose code is only in the answer's body or header.
    """
    code = getattr(error, "error_code", None)
    response: Any = error.response  # annotated too narrowly by the SDK: no headers, no body
    if code is None:
        code = response.headers.get("x-ms-error-code")
    if code is None:
        code = response.json()["odata.error"]["code"]
    return str(getattr(code, "value", code))


@contextmanager
def refused(kind: type[HttpResponseError], code: str, status: int) -> Iterator[None]:
    """Expect exactly this class of exception, with this error code and status."""
    with pytest.raises(kind) as caught:
        yield
    assert (type(caught.value), code_of(caught.value), caught.value.status_code) == (kind, code, status)
