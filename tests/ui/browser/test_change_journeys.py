"""Journeys that change data in a browser, looked at with the official SDKs afterwards. For `make browser`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EdmType, EntityProperty, TableServiceClient
from azure.storage.blob import BlobClient, BlobServiceClient
from azure.storage.queue import QueueServiceClient
from playwright.sync_api import Browser, Locator, Page, expect

from tests.ui.browser.browsers import window
from tests.ui.browser.data import ACCOUNT, Explored

pytestmark = pytest.mark.journey
BLOCK_BYTES = 4 << 20
"""As in blobs.js."""


def go(page: Page, explored: Explored, path: str) -> None:
    """Sign in, and go to a page of the account."""
    page.goto(explored.link)
    page.goto("/".join(page.url.split("/")[:3]) + f"/{ACCOUNT}/{path}")


def drop(page: Page, target: Locator, paths: Sequence[Path]) -> None:
    """Drop files or folders of this machine on an element, as a file manager does."""
    box = target.bounding_box()
    assert box is not None
    place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    data: Mapping[str, Any] = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    session = page.context.new_cdp_session(page)
    for event in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": event, **place, "data": data})


def test_an_entity_that_another_client_has_changed_shows_both_versions(browser: Browser, explored: Explored) -> None:
    theirs, mine = 2**53 + 3, 2**53 + 1  # A double has neither.
    with (
        TableServiceClient.from_connection_string(explored.storage.connection_string) as service,
        window(browser, expected=("412",)) as page,
    ):
        table = service.create_table("Conflicts")
        entity = {"PartitionKey": "p", "RowKey": "r", "Big": EntityProperty(2**53, EdmType.INT64), "Note": "first"}
        table.create_entity(entity)
        go(page, explored, "tables/Conflicts/entity?pk=p&rk=r")
        page.get_by_label("Value of Big").fill(str(mine))
        table.update_entity({**entity, "Big": EntityProperty(theirs, EdmType.INT64)})
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("Another client has changed this entity")
        expect(page.get_by_role("cell", name=f"{theirs} (Int64)")).to_be_visible()
        expect(page.get_by_label("Value of Big")).to_have_value(str(mine))
        assert table.get_entity("p", "r")["Big"].value == theirs
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_have_text("Saved.")
        found = table.get_entity("p", "r")
        assert (found["Big"].value, found["Big"].edm_type, found["Note"]) == (mine, EdmType.INT64, "first")


def test_a_folder_is_dropped_and_uploaded_with_its_folders(
    browser: Browser, explored: Explored, tmp_path: Path
) -> None:
    folder = tmp_path / "trip & <b>"
    contents = {
        "notes.txt": b"first",
        "empty": b"",
        "days/1/photo.bin": bytes(range(256)) * (BLOCK_BYTES // 256) + b"x",
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    with (
        BlobServiceClient.from_connection_string(explored.storage.connection_string) as service,
        window(browser) as page,
    ):
        container = service.create_container("dropped")
        go(page, explored, "blobs/dropped")
        drop(page, page.locator("#upload"), [folder])
        page.get_by_role("link", name=f"{folder.name}/").click()
        expect(page.get_by_role("link", name="days/")).to_be_visible()
        found = {name: container.download_blob(name).readall() for name in container.list_blob_names()}
    assert found == {f"{folder.name}/{name}": content for name, content in contents.items()}


def test_messages_in_flight_are_made_visible_and_poison_goes_back(browser: Browser, explored: Explored) -> None:
    with (
        QueueServiceClient.from_connection_string(explored.storage.connection_string) as service,
        window(browser) as page,
    ):
        main, poison = (service.create_queue(name) for name in ("orders", "orders-poison"))
        for number in range(3):
            poison.send_message(f"message {number}")
        assert len(list(poison.receive_messages(max_messages=3, visibility_timeout=600))) == 3
        go(page, explored, "queues/orders-poison")
        expect(page.get_by_role("cell", name="in flight")).to_have_count(3)
        button = page.get_by_role("button", name="Make selected visible now")
        expect(button).to_be_disabled()
        page.get_by_label("Select message 1", exact=True).check()
        page.get_by_label("Select message 2", exact=True).check()
        button.click()
        expect(page.get_by_role("status")).to_have_text("2 messages were made visible.")
        assert len(poison.peek_messages(max_messages=5)) == 2
        page.get_by_role("button", name="Move", exact=True).click()
        expect(page.get_by_text("1 message is in flight, and left there")).to_be_visible()
        page.get_by_role("link", name="Open the result").click()
        expect(page.get_by_role("heading", name="orders", exact=True)).to_be_visible()
        moved = list(main.receive_messages(max_messages=5))
        assert [each.dequeue_count for each in moved] == [1, 1]
        assert poison.get_queue_properties().approximate_message_count == 1


def test_an_int64_beyond_a_double_is_filtered_and_what_is_found_is_deleted(
    browser: Browser, explored: Explored
) -> None:
    numbers = [-(2**53) - 1, -(2**53), 2**53, 2**53 + 1]
    with (
        TableServiceClient.from_connection_string(explored.storage.connection_string) as service,
        window(browser) as page,
    ):
        table = service.create_table("Numbers")
        for row, number in enumerate(numbers):
            table.create_entity({"PartitionKey": "p", "RowKey": f"{row}", "Big": EntityProperty(number, EdmType.INT64)})
        go(page, explored, "tables/Numbers")
        page.get_by_text("Filter builder").click()
        page.get_by_label("Property 1", exact=True).fill("Big")
        page.get_by_label("Type 1", exact=True).select_option("Int64")
        page.get_by_label("Value 1", exact=True).fill(str(numbers[0]))
        page.get_by_role("button", name="Use as filter").click()
        expect(page.locator(".grid td.number")).to_have_text([str(numbers[0])])
        expect(page.get_by_text("1 row: that is all")).to_be_visible()
        page.get_by_text("Delete", exact=True).click()
        form = page.locator("form").filter(has=page.get_by_role("button", name="Delete all found rows"))
        form.get_by_role("textbox").fill("Numbers")
        form.get_by_role("button").click()
        expect(page.locator("#state")).to_have_text("done")
        assert [each["Big"].value for each in table.list_entities()] == numbers[1:]


def test_a_url_with_a_sas_opens_where_nobody_is_signed_in(browser: Browser, explored: Explored) -> None:
    with window(browser) as page:
        go(page, explored, "blobs/photos/blob?name=2026/a.txt")
        page.get_by_text("Share by URL (SAS)").click()
        page.get_by_role("button", name="Make the URL").click()
        url = page.get_by_label("The URL").input_value()
        go(page, explored, "blobs/photos/blob?name=2026/a.txt")
        expect(page.get_by_label("The URL")).to_have_count(0)
    with BlobClient.from_blob_url(url) as blob:
        assert blob.download_blob().readall() == b"text"
        with pytest.raises(HttpResponseError):
            blob.upload_blob(b"other", overwrite=True)
