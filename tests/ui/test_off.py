"""Without the explorer, nothing of it is imported and no port is there."""

import subprocess
import sys

PROGRAM = """
import sys
import lazulite.cli.serve, lazulite.cli.ui, lazulite.app.worker_supervisor, lazulite.app.worker
from lazulite.testing import server
with server() as storage:
    pass
print(sorted(name for name in sys.modules if name.startswith(("lazulite.ui", "jinja2", "markupsafe"))))
"""


def test_nothing_of_the_explorer_is_imported_until_it_is_opened() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "[]\n"
