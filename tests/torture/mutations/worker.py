"""A worker that differs as its primary does: `python -m tests.torture.mutations.worker NAMES …`."""

import sys

from lazulite.app import worker

from .__main__ import apply

if __name__ == "__main__":
    apply(sys.argv[1])
    sys.exit(worker.main(sys.argv[2:]))
