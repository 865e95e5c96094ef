"""`lazulite ui`: open the explorer of a running server, and print or open the link that signs in.

The link must not stand in the arguments of a process, which other users may read. So the browser is given a file that
only this user may read, and that leads to the link.
"""

import shutil
import tempfile
import time
import webbrowser
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from html import escape
from pathlib import Path
from typing import Any

from lazulite.app.commands import OPEN_UI, OpenUiArguments
from lazulite.cli.errors import CommandError
from lazulite.cli.selected_database import running_server
from lazulite.control.command import ControlError

_LOADING_SECONDS = 5.0
"""How long a browser may take to read the file."""


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Open the explorer; if this has started it, keep it until Ctrl-C."""
    server = running_server(args, environ)
    try:
        with closing(server.stream(OPEN_UI, OpenUiArguments(args.ui_port))) as items:
            opened: Any = next(items)
            print(opened["url"], flush=True)
            if not args.no_browser:
                with _leading_to(opened["url"]) as file:
                    webbrowser.open(file.as_uri())
                    time.sleep(_LOADING_SECONDS)
            if opened["started"]:
                print("the explorer is open until this command ends (Ctrl-C)", flush=True)
                for _ in items:
                    pass
    except ControlError as error:
        raise CommandError(error) from None
    except KeyboardInterrupt:
        print()
    return 0


@contextmanager
def _leading_to(url: str) -> Iterator[Path]:
    """Yield a page that leads to a URL, in a directory that only this user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="lazulite-ui-"))
    try:
        page = folder / "explorer.html"
        page.write_text(f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={escape(url)}">', encoding="ascii")
        yield page
    finally:
        shutil.rmtree(folder, ignore_errors=True)
