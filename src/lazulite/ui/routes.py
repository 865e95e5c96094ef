"""The pages of the explorer: one row each, in the order of the rail."""

from lazulite.ui.calls import Action, Route
from lazulite.ui.pages import blob_pages, container_pages, entity_pages, import_page, queue_pages, table_pages
from lazulite.ui.pages.account_pages import (
    add_account,
    empty_account,
    list_accounts,
    revoke_keys,
    rotate_key,
    set_switches,
    show_account,
)
from lazulite.ui.pages.advice_page import ADVICE, end_recording, record, show_advice, show_whole_advice
from lazulite.ui.pages.fault_page import add_rules, clear_rules, remove_rule, show_faults
from lazulite.ui.pages.heat_page import show_heat
from lazulite.ui.pages.job_pages import download_file, list_jobs, show_job, stop_job
from lazulite.ui.pages.overview import show_overview
from lazulite.ui.pages.partition_page import set_targets, show_partitions
from lazulite.ui.pages.request_pages import list_requests, show_request
from lazulite.ui.pages.session_pages import end_session, show_sessions, sign_out

ROUTES = (
    Route(path="/", title="Overview", show=show_overview, template="overview.html", navigation="Overview"),
    Route(
        path=table_pages.LIST,
        title="Tables of {account}",
        show=table_pages.list_tables,
        template="tables.html",
        navigation="Tables",
        actions={"create": Action(table_pages.create_table), "delete": Action(table_pages.delete_tables)},
    ),
    Route(
        path=table_pages.TABLE,
        title="{table}",
        show=table_pages.show_table,
        template="table.html",
        actions={
            "build": Action(table_pages.build_filter, changes=False),
            "count": Action(table_pages.count, changes=False),
            "delete-rows": Action(table_pages.delete_rows),
            "delete-found": Action(table_pages.delete_found),
            "set": Action(table_pages.set_property),
            "remove": Action(table_pages.remove_property),
            "copy": Action(table_pages.copy_rows),
            "export": Action(table_pages.export_found, changes=False),
            "empty": Action(table_pages.empty),
            "drop": Action(table_pages.delete_table),
        },
    ),
    Route(
        path=import_page.IMPORT,
        title="Import into {table}",
        show=import_page.show_import,
        template="import.html",
        actions={
            "preview": Action(import_page.preview, reads_body=True, changes=False),
            "import": Action(import_page.import_file, reads_body=True),
        },
    ),
    Route(
        path=entity_pages.ENTITY,
        title="Entity of {table}",
        show=entity_pages.show_entity,
        template="entity.html",
        actions={
            "save": Action(entity_pages.save),
            "delete": Action(entity_pages.delete),
            "download": Action(entity_pages.download, changes=False),
        },
    ),
    Route(
        path=entity_pages.NEW,
        title="New entity of {table}",
        show=entity_pages.show_new,
        template="entity.html",
        actions={"save": Action(entity_pages.save)},
    ),
    Route(
        path=queue_pages.LIST,
        title="Queues of {account}",
        show=queue_pages.list_queues,
        template="queues.html",
        navigation="Queues",
        actions={"create": Action(queue_pages.create_queue)},
    ),
    Route(
        path=queue_pages.QUEUE,
        title="{queue}",
        show=queue_pages.show_queue,
        template="queue.html",
        actions={
            "put": Action(queue_pages.put_message),
            "requeue": Action(queue_pages.requeue),
            "move": Action(queue_pages.move_messages),
            "delete-messages": Action(queue_pages.delete_messages),
            "clear": Action(queue_pages.clear_queue),
            "drop": Action(queue_pages.delete_queue),
        },
    ),
    Route(
        path=queue_pages.MESSAGE,
        title="Message of {queue}",
        show=queue_pages.show_message,
        template="message.html",
        actions={
            "edit": Action(queue_pages.edit_message),
            "delete-messages": Action(queue_pages.delete_messages),
        },
    ),
    Route(
        path=container_pages.LIST,
        title="Containers of {account}",
        show=container_pages.list_containers,
        template="containers.html",
        navigation="Blobs",
        actions={
            "create": Action(container_pages.create_container),
            "delete": Action(container_pages.delete_containers),
            "restore": Action(container_pages.restore_container),
        },
    ),
    Route(
        path=container_pages.BLOBS,
        title="{container}",
        show=container_pages.show_blobs,
        template="container.html",
        actions={
            "count": Action(container_pages.count, changes=False),
            "delete-blobs": Action(container_pages.delete_selected),
            "empty": Action(container_pages.empty),
            "block": Action(container_pages.put_block, reads_body=True),
            "commit": Action(container_pages.commit),
        },
    ),
    Route(
        path=container_pages.SETTINGS,
        title="Settings of {container}",
        show=container_pages.show_settings,
        template="container_settings.html",
        actions={
            "metadata": Action(container_pages.save_container_metadata),
            "access": Action(container_pages.set_access),
            "break-lease": Action(container_pages.break_container_lease),
            "share": Action(container_pages.share_container),
            "delete": Action(container_pages.delete_container),
        },
    ),
    Route(path=container_pages.ARCHIVE, title="", show=container_pages.download_archive, template=""),
    Route(
        path=blob_pages.BLOB,
        title="Blob of {container}",
        show=blob_pages.show_blob,
        template="blob.html",
        actions={
            "properties": Action(blob_pages.save_properties),
            "metadata": Action(blob_pages.save_metadata),
            "tags": Action(blob_pages.save_tags),
            "snapshot": Action(blob_pages.create_snapshot),
            "promote": Action(blob_pages.promote),
            "undelete": Action(blob_pages.undelete),
            "break-lease": Action(blob_pages.break_lease),
            "tier": Action(blob_pages.set_tier),
            "share": Action(blob_pages.share),
            "delete": Action(blob_pages.delete),
            "delete-past": Action(blob_pages.delete_past),
        },
    ),
    Route(path=blob_pages.CONTENT, title="", show=blob_pages.download, template=""),
    Route(path="/{account}/heat", title="Heat map", show=show_heat, template="heat.html", navigation="Heat"),
    Route(
        path=ADVICE,
        title="Advice on keys",
        show=show_advice,
        template="advice.html",
        actions={"record": Action(record, changes=False), "end": Action(end_recording, changes=False)},
    ),
    Route(path=f"{ADVICE}/whole", title="", show=show_whole_advice, template=""),
    Route(
        path="/{account}/partitions",
        title="Partitions",
        show=show_partitions,
        template="partitions.html",
        navigation="Partitions",
        actions={"targets": Action(set_targets)},
    ),
    Route(
        path="/{account}/account",
        title="Account {account}",
        show=show_account,
        template="account.html",
        navigation="Account",
        actions={
            "rotate": Action(rotate_key),
            "switches": Action(set_switches),
            "revoke": Action(revoke_keys),
            "empty": Action(empty_account),
        },
    ),
    Route(path="/requests", title="Requests", show=list_requests, template="requests.html", navigation="Requests"),
    Route(path="/requests/{id}", title="Request {id}", show=show_request, template="request.html"),
    Route(
        path="/accounts",
        title="Accounts",
        show=list_accounts,
        template="accounts.html",
        navigation="Accounts",
        actions={"add": Action(add_account)},
    ),
    Route(
        path="/faults",
        title="Faults",
        show=show_faults,
        template="faults.html",
        navigation="Faults",
        actions={"add": Action(add_rules), "remove": Action(remove_rule), "clear": Action(clear_rules)},
    ),
    Route(
        path="/jobs",
        title="Jobs",
        show=list_jobs,
        template="jobs.html",
        navigation="Jobs",
    ),
    Route(
        path="/jobs/{number}",
        title="Job {number}",
        show=show_job,
        template="job.html",
        actions={"stop": Action(stop_job, changes=False), "download": Action(download_file, changes=False)},
    ),
    Route(
        path="/sessions",
        title="Sessions",
        show=show_sessions,
        template="sessions.html",
        navigation="Sessions",
        actions={"end": Action(end_session, changes=False), "sign-out": Action(sign_out, changes=False)},
    ),
)
"""Literal parts of paths win over parameters by the order of the rows."""
