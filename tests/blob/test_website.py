"""Static websites, by HTTP: of a server with a port for them."""

from collections.abc import AsyncIterator

import httpx
import pytest

import lazulite
from lazulite.app.application import create_app
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.auth.sas import AccountSas, sign_account_sas

SETTINGS = lazulite.Settings(log_requests=False, services=("blob", "web"))
ACCOUNT = DEVELOPMENT_ACCOUNT.name
SAS = sign_account_sas(
    DEVELOPMENT_ACCOUNT,
    AccountSas(services="b", resource_types="sco", permission="rwdlact", expiry="2100-01-01T00:00:00Z"),
)
PAGES = {
    "index.html": b"<h1>root</h1>",
    "docs/index.html": b"<h1>docs</h1>",
    "docs/\u00e9 b.txt": b"0123456789",
    "errors/404.html": b"<h1>missing</h1>",
    "home.html": b"<h1>home</h1>",
}


class Site:
    """A server with a website, in process."""

    def __init__(self, client: httpx.AsyncClient, web: httpx.AsyncClient) -> None:
        self._client = client
        self._web = web

    async def put(self, path: str, content: bytes = b"", query: str = "", **headers: str) -> None:
        """Send an authorized PUT to the Blob service; it succeeds."""
        separator = "&" if query else ""
        url = f"http://127.0.0.1/{ACCOUNT}/{path}?{query}{separator}{SAS}"
        sent = {name.replace("_", "-"): text for name, text in headers.items()} | {"x-ms-version": "2021-12-02"}
        answer = await self._client.put(url, content=content, headers=sent)
        assert answer.status_code in (201, 202), answer.text

    async def enable(self, elements: str = "<IndexDocument>index.html</IndexDocument>", enabled: str = "true") -> None:
        """Set the properties of the website."""
        document = f"<StaticWebsite><Enabled>{enabled}</Enabled>{elements}</StaticWebsite>"
        body = f"<StorageServiceProperties>{document}</StorageServiceProperties>".encode()
        await self.put("", body, "restype=service&comp=properties")

    async def get(self, path: str, host: str = "127.0.0.1", method: str = "GET", **headers: str) -> httpx.Response:
        """Ask the website as a browser does."""
        prefix = f"/{ACCOUNT}/" if host == "127.0.0.1" else "/"
        sent = {name.replace("_", "-"): text for name, text in headers.items()}
        return await self._web.request(method, f"http://{host}{prefix}{path}", headers=sent)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    app = create_app(settings=SETTINGS)
    clients = [
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app.service(name), client=("127.0.0.1", 4711)))
        for name in ("blob", "web")
    ]
    async with app, clients[0], clients[1]:
        found = Site(*clients)
        await found.enable()
        await found.enable("", "false")
        for name, content in PAGES.items():
            media = "text/html" if name.endswith("html") else "text/plain"
            await found.put(f"$web/{name}", content, x_ms_blob_type="BlockBlob", x_ms_blob_content_type=media)
        yield found


@pytest.mark.parametrize("host", ["127.0.0.1", f"{ACCOUNT}.web.localhost"])
@pytest.mark.parametrize(
    ("path", "name"), [("", "index.html"), ("docs/", "docs/index.html"), ("home.html", "home.html")]
)
async def test_a_path_shows_a_page_without_credentials(site: Site, host: str, path: str, name: str) -> None:
    await site.enable()
    answer = await site.get(path, host)
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, PAGES[name], "text/html")
    assert "001e" in answer.headers["x-ms-request-id"]
    head = await site.get(path, host, "HEAD")
    assert (head.status_code, head.headers["content-length"], head.content) == (200, str(len(PAGES[name])), b"")
    assert head.headers["etag"] == answer.headers["etag"]


async def test_names_are_percent_decoded_once_and_ranges_and_conditions_count(site: Site) -> None:
    await site.enable()
    answer = await site.get("docs/%C3%A9%20b.txt", Range="bytes=2-4")
    assert (answer.status_code, answer.content) == (206, b"234")
    same = await site.get("docs/%C3%A9%20b.txt", If_None_Match=answer.headers["etag"])
    assert (same.status_code, same.content) == (304, b"")
    beyond = await site.get("docs/%C3%A9%20b.txt", Range="bytes=99-")
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, "bytes */10")


async def test_a_page_with_tags_is_shown_and_nothing_of_its_tags(site: Site) -> None:
    await site.enable()
    await site.put("$web/tagged.html", b"page", x_ms_blob_type="BlockBlob", x_ms_tags="owner=ada")
    answers = [await site.get("tagged.html", x_ms_if_tags=f"\"owner\" = '{owner}'") for owner in ("ada", "bob")]
    assert [(answer.status_code, answer.content) for answer in answers] == [(200, b"page")] * 2
    assert not any("tag-count" in answer.headers or b"ada" in answer.content for answer in answers)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("docs%5Cindex.html", "docs/index.html"),
        ("docs%5C", "docs/index.html"),
        ("docs/%2E", "docs/index.html"),
        ("x/%2E%2E/home.html", "home.html"),
        ("home.html.", "home.html"),
        ("%2E%2E/home.html", "home.html"),
        ("docs/%2E%2E", "index.html"),
    ],
)
async def test_a_path_is_read_as_in_the_blob_service(site: Site, path: str, name: str) -> None:
    await site.enable()
    answer = await site.get(path)
    assert (answer.status_code, answer.content) == (200, PAGES[name])


async def test_no_path_leaves_the_website(site: Site) -> None:
    await site.enable()
    await site.put("private", query="restype=container")
    await site.put("private/secret", b"secret", x_ms_blob_type="BlockBlob")
    for path in (
        "%2E%2E/private/secret",
        "..%5Cprivate%5Csecret",
        "%2E%2E%2Fprivate%2Fsecret",
        "x/%2E%2E/%2E%2E/private/secret",
    ):
        assert (await site.get(path)).status_code == 404


@pytest.mark.parametrize("path", ["missing.html", "docs", "Index.html", "docs/docs/"])
async def test_a_miss_has_the_status_404_and_the_page_for_it(site: Site, path: str) -> None:
    await site.enable()
    plain = await site.get(path)
    assert (plain.status_code, plain.headers["x-ms-error-code"]) == (404, "WebContentNotFound")
    assert b"The requested content does not exist." in plain.content
    await site.enable("<ErrorDocument404Path>errors/404.html</ErrorDocument404Path>")
    own = await site.get(path, Range="bytes=0-1", If_Match='"0x1"')
    assert (own.status_code, own.content) == (404, PAGES["errors/404.html"])


async def test_the_root_may_have_a_page_of_its_own(site: Site) -> None:
    await site.enable("<DefaultIndexDocumentPath>home.html</DefaultIndexDocumentPath>")
    assert (await site.get("")).content == PAGES["home.html"]
    assert (await site.get("docs/")).status_code == 404


async def test_nothing_is_shown_before_the_website_is_enabled_or_of_other_accounts(site: Site) -> None:
    assert (await site.get("index.html")).status_code == 404
    await site.enable()
    assert (await site.get("index.html")).status_code == 200
    assert (await site.get("", "absent.web.localhost")).status_code == 404
    await site.enable("", "false")
    assert (await site.get("index.html")).status_code == 404


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "OPTIONS"])
async def test_a_website_is_only_read(site: Site, method: str) -> None:
    await site.enable()
    response = await site.get("index.html", method=method)
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")
    assert (await site.get("index.html")).content == PAGES["index.html"]


@pytest.mark.parametrize("path", ["..%2Fdocs/a", "%2e%2e/x", "a%00b", "x" * 1025, "%ff"])
async def test_hostile_paths_find_nothing(site: Site, path: str) -> None:
    await site.enable()
    assert (await site.get(path)).status_code in (400, 404)
