"""How the SDK tests look at a rejection: the SDK's class. The service's codes are the conformance suite's."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from azure.core.exceptions import HttpResponseError


@contextmanager
def rejected(expected: type[HttpResponseError] | int) -> Iterator[None]:
    """Expect exactly this class of exception, or the status of a rejection that the SDK has no class of its own for."""
    kind = HttpResponseError if isinstance(expected, int) else expected
    with pytest.raises(kind) as caught:
        yield
    assert type(caught.value) is kind
    assert not isinstance(expected, int) or caught.value.status_code == expected
