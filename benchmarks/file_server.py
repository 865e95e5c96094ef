"""A plain file server: aiohttp sends the files below a directory, and knows no accounts."""

import argparse
from functools import partial

from aiohttp import web

from benchmarks.requests import ACCOUNT


def main() -> None:
    """Serve `--location` below the path of the account."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--location")
    arguments = parser.parse_args()
    application = web.Application()
    application.router.add_static(f"/{ACCOUNT}", arguments.location)
    announce = partial(print, flush=True)
    web.run_app(application, host="127.0.0.1", port=arguments.port, print=announce, access_log=None)


if __name__ == "__main__":
    main()
