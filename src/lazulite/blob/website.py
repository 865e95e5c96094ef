"""The static websites: the blobs of the containers `$web`, read without credentials. Source: reference §47.

A website shows blobs whatever the public access of the account and the container is. It has no CORS.
"""

from collections.abc import Callable, Mapping
from html import escape
from http import HTTPStatus
from typing import Protocol
from urllib.parse import quote

from lazulite.auth.grant import Grant
from lazulite.blob.auth.requirements import LEVELS
from lazulite.blob.auth.sas import BlobScope
from lazulite.blob.requests.call import Context
from lazulite.blob.resource import WEB, named_path
from lazulite.engine.contract import EngineUnavailableError, SpaceDroppedError
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.errors import ServiceError, unsupported_verb
from lazulite.protocol.message import Request, Response
from lazulite.protocol.version import NEWEST
from lazulite.service.common_fields import CommonFields
from lazulite.service.properties import StaticWebsite

_METHODS = ("GET", "HEAD")
_PASSED_ON = ("range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since")
"""The fields of a request that count as in Get Blob."""
_GRANT = Grant("anonymous", LEVELS["blob"], scope=BlobScope(WEB))
_MISSING = frozenset({"BlobNotFound", "ContainerNotFound"})


class _Blobs(Protocol):
    """The Blob service."""

    async def run(self, request: Request, grant: Grant) -> Response:
        """See `ServiceKernel.run`."""
        ...


class Website:
    """The websites of all accounts: a `Service`.

    Args:
        blobs: the Blob service.
        context: of that service.
        is_account: tells whether there is an account of a name.
        addressing: how the websites of accounts are addressed.
        server: the `Server` field.
    """

    def __init__(
        self, blobs: _Blobs, context: Context, is_account: Callable[[str], bool], addressing: Addressing, server: str
    ) -> None:
        self._blobs = blobs
        self._context = context
        self._is_account = is_account
        self._addressing = addressing
        self._common = CommonFields(server)

    async def respond(self, request: Request) -> Response:
        """See `Service`."""
        try:
            response = await self._page_of(request)
        except ServiceError as error:
            response = _page(error)
        except EngineUnavailableError:
            response = _page(ServiceError("ServerBusy"))
        return self._finished(request, response)

    def reject(self, request: Request, error: ServiceError) -> Response:
        """See `Service`."""
        return self._finished(request, _page(error))

    async def _page_of(self, request: Request) -> Response:
        """Return the page that a path names, or what the website shows in its place.

        Raises:
            ServiceError: there is neither, or a website does not answer such a request.
            EngineUnavailableError: the store cannot be read.
        """
        if request.method not in _METHODS:
            raise unsupported_verb(_METHODS)
        address = self._addressing.locate(request)
        account, path = address.account, quote(named_path(address.resource))
        if not self._is_account(account):
            raise ServiceError("WebContentNotFound")
        request.record.account = account
        site = (await self._context.properties.get(account)).blob.website
        if not site.enabled:
            raise ServiceError("WebContentNotFound")
        fields = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        found = await self._show(request, account, path + _index(site, path), fields)
        if found is None and site.error_document_404_path:
            found = await self._show(request, account, quote(site.error_document_404_path), {})
            if found is not None:
                found.status = 404
        if found is None:
            raise ServiceError("WebContentNotFound")
        return found

    async def _show(self, request: Request, account: str, path: str, fields: Mapping[str, str]) -> Response | None:
        """Return the response with a blob; None if there is none.

        Args:
            request: of the browser.
            account: whose website it is.
            path: the name of the blob, percent-encoded.
            fields: conditions and the range.

        Raises:
            ServiceError: as Get Blob.
        """
        if not path:
            return None
        headers = {**fields, "x-ms-version": NEWEST}
        inner = Request(request.method, f"/{quote(account)}/{WEB}/{path}", "", headers, record=request.record)
        try:
            return await self._blobs.run(inner, _GRANT)
        except SpaceDroppedError:
            return None
        except ServiceError as error:
            if error.code in _MISSING:
                return None
            raise

    def _finished(self, request: Request, response: Response) -> Response:
        now = self._context.clock()
        response.headers += self._common.pairs(request, "", now, credentials_rejected=False)
        return response


def _index(site: StaticWebsite, path: str) -> str:
    """Return what a folder's path lacks to be that of a page, percent-encoded."""
    if not path and site.default_index_document_path:
        return quote(site.default_index_document_path)
    return quote(site.index_document) if not path or path.endswith("/") else ""


def _page(error: ServiceError) -> Response:
    """Return a rejection as a page for people."""
    if error.status == HTTPStatus.NOT_MODIFIED:
        return Response(error.status, [*error.headers], error_code=error.code)
    title = f"{error.status} {HTTPStatus(error.status).phrase}"
    shown = f"<head><title>{title}</title></head><body><h1>{escape(error.message)}</h1></body>"
    text = f"<!DOCTYPE html><html>{shown}</html>"
    headers = [("Content-Type", "text/html"), ("x-ms-error-code", error.code), *error.headers]
    return Response(error.status, headers, text.encode(), error.code)
