"""A plain file server: aiohttp sends the files below a directory, and knows no accounts. Arguments: port, directory."""

import sys
from functools import partial

from aiohttp import web

from benchmarks.requests import ACCOUNT

if __name__ == "__main__":
    application = web.Application()
    application.router.add_static(f"/{ACCOUNT}", sys.argv[2])
    announce = partial(print, flush=True)
    web.run_app(application, host="127.0.0.1", port=int(sys.argv[1]), print=announce, access_log=None)
