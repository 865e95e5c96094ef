"""The synchronous classes are made of the asynchronous ones: `PATTERNS_WRITE=1` writes them anew.

A module in `aio` that is listed here is the source. After a change of it, run this test with that variable.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "lazulite_patterns"
PAIRS = {
    "aio/audit.py": "audit/run.py",
    "aio/query.py": "table/query.py",
    "aio/queryable.py": "table/queryable.py",
    "aio/table.py": "table/table.py",
    **{f"aio/shapes/{each.name}": f"shapes/{each.name}" for each in sorted((SOURCE / "aio/shapes").glob("[a-z]*.py"))},
    "aio/encryption.py": "encryption/table.py",
    "aio/leases.py": "leases/lease.py",
    "aio/streams.py": "streams/stream.py",
    "aio/tasks.py": "transactions/tasks.py",
}
"""Each asynchronous module, and the synchronous one that is made of it."""
_WORDS = [
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(Iterator|Iterable|Generator|ContextManager)\b", r"\1"),
    (r"\basyncio\b", "threading"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\b__a(iter|next|enter|exit)__\b", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bazure\.data\.tables\.aio\b", "azure.data.tables"),
    (r"\bazure\.storage\.queue\.aio\b", "azure.storage.queue"),
    (r"\bazure\.storage\.blob\.aio\b", "azure.storage.blob"),
    (r"\blazulite_patterns\.aio\.driver\b", "lazulite_patterns.effects.driver"),
    (r"\ban asynchronous\b", "a synchronous"),
    (r"\basynchronous\b", "synchronous"),
]
_MODULES = [
    (rf"\b{re.escape(_module)}\b", _other)
    for _module, _other in (
        tuple(f"lazulite_patterns/{each.removesuffix('.py')}".replace("/", ".") for each in pair)
        for pair in PAIRS.items()
    )
]


def synchronous(text: str) -> str:
    """Return a module without `async` and `await`, as the formatter writes it."""
    for pattern, replacement in (*_WORDS, *_MODULES):
        text = re.sub(pattern, replacement, text)
    for command in (["check", "--fix", "--quiet", "--unsafe-fixes", "--select", "I,UP028"], ["format"]):
        made = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(SOURCE / "made.py"), "-"],
            input=text.encode(),
            capture_output=True,
            check=True,
        )
        text = made.stdout.decode()
    return text


@pytest.mark.skipif(find_spec("ruff") is None, reason="ruff formats what is made")
@pytest.mark.parametrize("module", PAIRS)
def test_a_synchronous_module_is_made_of_the_asynchronous_one(module: str) -> None:
    made = synchronous((SOURCE / module).read_text(encoding="utf-8"))
    path = SOURCE / PAIRS[module]
    if os.environ.get("PATTERNS_WRITE"):
        path.write_text(made, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == made, "write it anew: PATTERNS_WRITE=1"
