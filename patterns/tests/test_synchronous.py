"""The synchronous classes are made of the asynchronous ones: `make twins` writes them."""

from importlib.util import find_spec

import pytest

from .twins import PAIRS, SOURCE, made_of


@pytest.mark.skipif(find_spec("ruff") is None, reason="ruff formats what is made")
@pytest.mark.parametrize("module", PAIRS)
def test_a_synchronous_module_is_current(module: str) -> None:
    assert (SOURCE / PAIRS[module]).read_text(encoding="utf-8") == made_of(module), "run `make twins`"
