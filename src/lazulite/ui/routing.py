"""Finds the page of a path, and the links of the frame."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from lazulite.ui.calls import PageError, Route, link

_PARAMETER = re.compile(r"\\\{(\w+)\\\}")


class Crumb(NamedTuple):
    """One part of a path, for people."""

    text: str
    href: str
    """"" if there is no page of that path."""


class NavigationLink(NamedTuple):
    """A link of the rail."""

    text: str
    href: str
    path: str
    of_account: bool


class Routes:
    """The pages, by their paths.

    Args:
        routes: whose literal parts distinguish them.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        self.all = tuple(routes)
        self._patterns = [(_pattern(route.path), route) for route in routes]

    def find(self, path: str) -> tuple[Route, Mapping[str, str]]:
        """Return the page of a path, and the parameters of the path, decoded.

        Raises:
            PageError: there is none.
        """
        for pattern, route in self._patterns:
            matched = pattern.fullmatch(path)
            if matched is not None:
                try:
                    return route, {name: unquote(text, errors="strict") for name, text in matched.groupdict().items()}
                except UnicodeDecodeError:
                    break
        raise PageError(404, "there is no page at this address")

    def navigation(self, account: str, is_one_of_many: bool) -> Sequence[NavigationLink]:
        """Return the links of the rail.

        Args:
            account: that the pages are of; "" if there is none.
            is_one_of_many: whether pages that are of no account have to be told which one is selected.
        """
        found = []
        for each in self.all:
            of_account = "{account}" in each.path
            if each.navigation and (account or not of_account):
                path = link(each.path, account=account) if of_account else each.path
                query = {} if of_account or not is_one_of_many else {"account": account}
                found.append(NavigationLink(each.navigation, link(path, **query), path, of_account))
        return found

    def crumbs(self, path: str) -> Sequence[Crumb]:
        """Return the parts of a path, each with its page if it has one."""
        return list(self._crumbs(path))

    def _crumbs(self, path: str) -> Iterator[Crumb]:
        yield Crumb("Lazulite", "/")
        so_far = ""
        route = next((route for pattern, route in self._patterns if pattern.fullmatch(path)), None)
        if route is not None and route.path.startswith("/{account}/"):
            name, _, path = path.removeprefix("/").partition("/")
            so_far = f"/{name}"
            yield Crumb(unquote(name), f"{so_far}/account")
            path = f"/{path}"
        for part in path.split("/")[1:]:
            if part:
                so_far += f"/{part}"
                has_page = any(pattern.fullmatch(so_far) for pattern, _ in self._patterns)
                yield Crumb(unquote(part), so_far if has_page else "")


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(_PARAMETER.sub(r"(?P<\1>[^/]+)", re.escape(path)))
