"""Write the synchronous modules again from the asynchronous ones: `make twins`, or in `patterns` `-m tests.twins`.

A module in `aio` that is listed in `PAIRS` is the source; the other one is its synchronous twin.
"""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "lazulite_patterns"
PAIRS = {
    "aio/auditing.py": "auditing/run.py",
    "aio/clients.py": "table/clients.py",
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
BANNER = "# Generated from {source}. Do not edit this module: edit that one, and run `make twins`.\n"
_WORDS = [
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(Iterator|Iterable|Generator|ContextManager)\b", r"\1"),
    (r"\basyncio\b", "threading"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\b__a(iter|next|enter|exit)__\b", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bAsyncTokenCredential\b", "TokenCredential"),
    (r"\bazure\.core\.credentials_async\b", "azure.core.credentials"),
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


def made_of(module: str) -> str:
    """Return the text of the synchronous module that is made of an asynchronous one, as the formatter writes it."""
    text = (SOURCE / module).read_text(encoding="utf-8")
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
    return BANNER.format(source=f"lazulite_patterns/{module}") + text


def main() -> None:
    """Write each synchronous module that is not current, and print its name."""
    for module, twin in PAIRS.items():
        path, text = SOURCE / twin, made_of(module)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(twin)


if __name__ == "__main__":
    main()
