"""The documentation is complete: what it lists is what there is, with the values that there are."""

import configparser
import itertools
import json
import re
import shlex
import tomllib
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from dataclasses import fields
from io import BytesIO

import pytest
from packaging.requirements import Requirement

from lazulite.auth import shared_key
from lazulite.auth.bearer import jwks
from lazulite.auth.bearer import token as bearer
from lazulite.blob import limits as blob_limits
from lazulite.blob import resource as blob_resource
from lazulite.blob.batch import parts as blob_batch
from lazulite.blob.blocks import block_list_xml
from lazulite.blob.content.source_errors import UNMET, SourceUse
from lazulite.blob.copies import copy_blob
from lazulite.blob.model import blob as blob_row
from lazulite.blob.model import block_id, copy_source, lease, tag_expression, tags
from lazulite.blob.model.conditions import Outcome
from lazulite.blob.pages import get_page_ranges
from lazulite.blob.requests.preconditions import PRECONDITIONS, LeaseUse, PreconditionUse, Row
from lazulite.cli.flag_types import COUNT_MAX
from lazulite.cli.parser import build_parser
from lazulite.cli.serve_flags import LIMIT_FLAGS
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol import metadata, multipart, query_string, resource_names
from lazulite.protocol.errors import CATALOGUE
from lazulite.protocol.message import Request, Response
from lazulite.protocol.xml import document as xml
from lazulite.protocol.xml import parser as xml_tree
from lazulite.queue import limits as queue_limits
from lazulite.server.limits import KIB, MIB, Limits
from lazulite.server.middleware import forwarded
from lazulite.server.observability.access_log import RequestLog
from lazulite.server.observability.exchange import Exchange
from lazulite.server.oidc import issuer_keys
from lazulite.service import properties_xml, signed_identifiers
from lazulite.service.routing import QueryLimits
from lazulite.settings.config import ACCOUNT_VARIABLES
from lazulite.settings.database import DATABASE_VARIABLES
from lazulite.table import names
from lazulite.table.model import edm, entity
from lazulite.table.payload import atom, json_reader
from lazulite.table.query import options as query_options
from lazulite.table.query.filter import DEPTH_MAX, TERMS_MAX, TEXT_MAX

from .docs_support import PAGES, ROOT, fences, page_text, table_rows

HEAD_STATUSES = {401, 408, 414, 431}
"""Statuses that a code has in place of the catalogue's: of rejected tokens, and of heads that the server rejects."""

SOURCE_STATUSES = {304, 404, 412}
"""Statuses that a source gives to the rejection of the request that reads it."""


def parsers(parser: ArgumentParser) -> Iterator[ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for command in action.choices.values():
                yield from parsers(command)


def test_every_flag_is_documented() -> None:
    known = {
        option for parser in parsers(build_parser()) for action in parser._actions for option in action.option_strings
    }
    cells = [row[0] for row in table_rows("docs/flags.md")]
    documented = {word for cell in cells for word in re.findall(r"(?<![\w\[-])--?[A-Za-z][A-Za-z-]*", cell)}
    assert documented == known


def test_the_defaults_of_flags_are_documented() -> None:
    rows = {row[0].split()[0].strip("`"): row[1] for row in table_rows("docs/flags.md")}
    defaults = {flag: getattr(Limits(), field) for flag, (field, _, _) in LIMIT_FLAGS.items()}
    for flag, default in {**defaults, "--page-seconds": QueryLimits().page_seconds}.items():
        assert f"({default:g})" in rows[flag], flag


def test_every_variable_is_documented() -> None:
    documented = {row[0].strip("`") for row in table_rows("docs/flags.md")}
    assert {*ACCOUNT_VARIABLES, *DATABASE_VARIABLES} <= documented


def test_the_bound_of_connections_to_a_database_is_documented() -> None:
    row = next(row for row in table_rows("docs/flags.md") if row[0] == "`--engine-connections N`")
    settings = PostgresSettings(dsn="")
    assert f"1 to {COUNT_MAX} ({settings.connections_max})" in row[1]


def test_every_field_of_the_log_is_documented() -> None:
    file = BytesIO()
    log = RequestLog(file)
    log.record(Exchange(Request("GET", "/"), Response(200), 1.0, 0, 0))
    log.close()
    documented = {
        name for row in table_rows("docs/operations/monitoring.md") for name in re.findall(r"`([a-z_]+)`", row[0])
    }
    assert set(json.loads(file.getvalue())) <= documented


def spelled(name: str, value: float) -> str:
    """Return a limit as the documentation spells it, by the unit at the end of its name."""
    if name.endswith("_seconds"):
        return f"{value:g} s"
    if name.endswith("_bytes") and value >= MIB:
        return f"{value / MIB:g} MiB"
    return f"{value / KIB:g} KiB" if name.endswith("_bytes") else f"{value:,}"


def test_every_setting_of_the_server_is_documented() -> None:
    rows = {row[0]: row for row in table_rows("docs/limits.md")}
    flags = {field: flag for flag, (field, _, _) in LIMIT_FLAGS.items()}
    for setting in fields(Limits):
        row = rows.get(f"`{setting.name}`")
        assert row is not None, f"{setting.name} is not documented"
        assert row[1] == spelled(setting.name, getattr(Limits(), setting.name))
        assert row[2] == (f"`{flags[setting.name]}`" if setting.name in flags else "")


def test_every_setting_of_queries_is_documented() -> None:
    rows = table_rows("docs/limits.md")
    for setting in fields(QueryLimits):
        found = [row for row in rows if f"(`{setting.name}`)" in row[0]]
        assert len(found) == 1, f"{setting.name} is not documented"
        assert found[0][1].startswith(spelled(setting.name, getattr(QueryLimits(), setting.name)))


@pytest.mark.parametrize(
    ("what", "limit"),
    [
        ("table name, characters", f"{names.TABLE_NAME_MIN} to {names.TABLE_NAME_MAX}"),
        ("property name, characters", names.PROPERTY_NAME_MAX),
        ("PartitionKey, RowKey, UTF-16 units each", names.KEY_MAX_UTF16),
        ("properties, without the keys and Timestamp", entity.PROPERTIES_MAX),
        ("entity, by the formula below", f"{entity.ENTITY_MAX_BYTES // MIB} MiB"),
        ("Double as a string, characters", edm.DECIMAL_LENGTH_MAX),
        ("String", (edm.STRING.limit - 4) // 2),
        ("Binary", edm.BINARY.limit - 4),
        ("brackets open at one time in a JSON body", json_reader.DEPTH_MAX),
        ("elements of an Atom body", atom.ELEMENTS_MAX),
        ("elements of an Atom body within one another", xml.DEPTH_MAX),
        ("`$top`", f"0 to {query_options.TOP_MAX:,}"),
        ("names in `$select`", query_options.SELECT_MAX),
        ("characters of a `$filter`", TEXT_MAX),
        ("parentheses and `not` within one another", DEPTH_MAX),
        ("comparisons and other terms in a `$filter`", TERMS_MAX),
        ("queue name, characters", f"{resource_names.NAME_MIN} to {resource_names.NAME_MAX}"),
        ("metadata of a queue, bytes", f"{metadata.METADATA_BYTES_MAX // KIB} KiB"),
        ("text of a message, bytes of UTF-8", f"{queue_limits.TEXT_BYTES_MAX // KIB} KiB"),
        ("body with a message", f"{queue_limits.BODY_BYTES_MAX // KIB} KiB"),
        ("`visibilitytimeout` of a get, seconds", f"1 to {queue_limits.VISIBILITY_SECONDS_MAX:,}"),
        ("`visibilitytimeout` of a put or update, seconds", f"0 to {queue_limits.VISIBILITY_SECONDS_MAX:,}"),
        ("`messagettl`, seconds", f"1 to {queue_limits.TTL_SECONDS_MAX:,}"),
        ("`numofmessages`", f"1 to {queue_limits.MESSAGES_MAX}"),
        ("`maxresults` of a list of queues", f"1 to {queue_limits.QUEUES_MAX:,}"),
        ("container name, characters", f"{resource_names.NAME_MIN} to {resource_names.NAME_MAX}"),
        ("blob name, UTF-16 units", f"1 to {blob_resource.BLOB_NAME_MAX:,}"),
        ("metadata of a container or blob, bytes", f"{metadata.METADATA_BYTES_MAX // KIB} KiB"),
        ("Put Blob", f"{blob_limits.PUT_BLOB_BYTES_MAX // MIB:,} MiB"),
        ("Put Block", f"{blob_limits.PUT_BLOCK_BYTES_MAX // MIB:,} MiB"),
        ("Append Block", f"{blob_limits.APPEND_BLOCK_BYTES_MAX // MIB} MiB"),
        ("pages of one Put Page", f"{blob_limits.PUT_PAGE_BYTES_MAX // MIB} MiB"),
        ("length of a page blob", f"{blob_limits.PAGE_BLOB_BYTES_MAX // MIB**2} TiB"),
        ("committed blocks of a blob", blob_limits.BLOCKS_MAX),
        ("uncommitted blocks of a blob", blob_limits.UNCOMMITTED_BLOCKS_MAX),
        ("entries of a block list", block_list_xml.ENTRIES_MAX),
        ("body with a block list", f"{block_list_xml.BODY_BYTES_MAX // MIB} MiB"),
        ("id of a block, bytes", block_id.ID_BYTES_MAX),
        ("range with a digest", f"{blob_limits.RANGE_DIGEST_BYTES_MAX // MIB} MiB"),
        ("blobs and prefixes in a page of a list", blob_limits.BLOBS_OF_LIST_MAX),
        ("containers in a page of a list", blob_limits.CONTAINERS_MAX),
        ("ranges in a page of page ranges", get_page_ranges.RANGES_MAX),
        ("index tags of a blob", tags.TAGS_MAX),
        ("name of a tag, characters", f"1 to {tags.NAME_MAX}"),
        ("value of a tag, characters", tags.VALUE_MAX),
        ("expression of tags, characters", tag_expression.TEXT_MAX),
        ("tags in a search", tag_expression.SEARCHED_TAGS_MAX),
        ("comparisons in a condition on tags", tag_expression.COMPARISONS_MAX),
        ("requests in a batch of blobs", blob_batch.PARTS_MAX),
        ("body of a batch of blobs", f"{blob_batch.BODY_BYTES_MAX // MIB} MiB"),
        ("URL of a copy's source, characters", copy_source.URL_MAX),
        ("source of a synchronous copy", f"{copy_blob.SYNC_BYTES_MAX // MIB} MiB"),
        ("lease, seconds", f"{lease.DURATIONS.start} to {lease.DURATIONS.stop - 1}, or −1"),
        ("break of a lease, seconds", f"0 to {lease.BREAK_SECONDS.stop - 1}"),
        ("content in the row itself", f"{blob_row.INLINE_BYTES_MAX // KIB} KiB"),
        ("operations", multipart.PARTS_MAX),
        ("header lines of one operation", multipart.HEADERS_MAX),
        ("stored access policies of a table, queue or container", signed_identifiers.MAX_POLICIES),
        ("id of a policy, UTF-16 units", signed_identifiers.MAX_ID_LENGTH),
        ("retention, days", f"1 to {properties_xml.MAX_RETENTION_DAYS}"),
        ("CORS rules", properties_xml.MAX_RULES),
        ("CORS rules together, characters without tags", properties_xml.MAX_CORS_CHARACTERS),
        ("origins of a rule", properties_xml.MAX_ORIGINS),
        ("literal headers of a list", properties_xml.MAX_LITERAL_HEADERS),
        ("prefixed headers of a list", properties_xml.MAX_PREFIXED_HEADERS),
        ("an origin or header, characters", properties_xml.MAX_ITEM_LENGTH),
        ("XML body", f"{xml.BYTES_MAX // KIB} KiB"),
        ("XML elements", xml.ELEMENTS_MAX),
        ("XML depth", xml.DEPTH_MAX),
        ("attributes of an XML element", xml_tree.ATTRIBUTES_MAX),
        ("a tag, comment or instruction of an XML document, bytes", xml_tree.MARKUP_BYTES_MAX),
        ("name of an XML namespace, characters", xml_tree.NAMESPACE_CHARACTERS_MAX),
        ("query parameters", query_string.MAX_PARAMETERS),
        ("addresses of an `X-Forwarded-For`", forwarded.HOPS_MAX),
        ("`timeout`", f"{query_string.REQUEST_SECONDS_MAX} s"),
        ("bearer token, characters", bearer.TOKEN_CHARACTERS_MAX),
        ("an issuer's key set, bytes", jwks.JWKS_BYTES_MAX),
        ("keys of a key set", jwks.KEYS_MAX),
        ("an issuer's configuration, bytes", issuer_keys.DISCOVERY_BYTES_MAX),
        ("time to fetch both", f"{issuer_keys.FETCH_SECONDS_MAX:g} s"),
        ("name of a key, characters", jwks.KEY_ID_CHARACTERS_MAX),
        ("RSA keys, bits", f"{jwks.RSA_BITS_MIN:,} to {jwks.RSA_BITS_MAX:,}"),
        ("date of a Shared Key request", f"{shared_key.REQUEST_AGE_SECONDS_MAX // 60} minutes"),
    ],
)
def test_a_limit_is_documented(what: str, limit: int | str) -> None:
    row = next(row for row in table_rows("docs/limits.md") if row[0] == what)
    expected = f"{limit:,}" if isinstance(limit, int) else limit
    assert re.match(rf"{re.escape(expected)}(?![\d,])", row[1]), row


def test_the_algorithms_of_tokens_are_documented() -> None:
    row = next(row for row in table_rows("docs/operations/bearer-tokens.md") if row[0] == "signature")
    assert set(re.findall(r"[A-Z]{2}\d{3}", row[1])) == jwks.ALGORITHMS


def test_the_times_of_an_issuers_keys_are_documented() -> None:
    text = " ".join(page_text("docs/operations/bearer-tokens.md").split())
    assert (issuer_keys.REFRESH_SECONDS, "every 5 minutes" in text) == (5 * 60, True)
    assert f"waits until {issuer_keys.UNKNOWN_KEY_SECONDS:g} seconds have passed" in text
    assert (issuer_keys.TRUSTED_SECONDS, "trusted for an hour" in text) == (60 * 60, True)
    assert (bearer.SKEW_SECONDS, "give or take a minute" in text) == (60, True)


def test_the_error_codes_exist_and_have_the_status_that_is_said() -> None:
    said = [found for page in PAGES for found in re.findall(r"\b([345]\d\d) `(\w+)`", page_text(page))]
    assert len(said) > 40
    for status, code in said:
        others = HEAD_STATUSES | (SOURCE_STATUSES if code == "CannotVerifyCopySource" else set())
        assert CATALOGUE[code][0] == int(status) or int(status) in others, (status, code)


def test_the_unit_for_systemd_starts_a_command_that_exists() -> None:
    unit = next(fence for fence in fences("docs/operations/install.md") if fence.language == "ini")
    read = configparser.ConfigParser(strict=True)
    read.optionxform = str  # type: ignore[assignment,method-assign]  # the documented way to keep the case of names
    read.read_string(unit.text)
    program, *arguments = shlex.split(read["Service"]["ExecStart"])
    args = build_parser().parse_args(arguments)
    assert program.endswith("/.venv/bin/lazulite")
    assert str(args.location) == "/var/lib/" + read["Service"]["StateDirectory"]
    assert int(read["Service"]["TimeoutStopSec"]) > Limits().drain_seconds
    assert int(read["Service"]["LimitNOFILE"]) >= Limits().connections + 5 * 1024


def test_the_clients_are_those_that_run() -> None:
    pins = dict(line.split("==") for line in page_text("constraints.txt").splitlines())
    run = [(name, pins[name]) for name in ("azure-data-tables", "azure-storage-queue", "azure-storage-blob")]
    for directory in ("javascript", "javascript-legacy"):
        run += json.loads(page_text(f"tests/sdk/{directory}/package.json"))["dependencies"].items()
    for pinned in (ROOT / "tests" / "sdk").glob("*/*.txt"):
        name, version = pinned.stem.rsplit("-", 1)
        run.append((name, version))
    rows = [row for row in table_rows("docs/clients.md") if row[0].startswith("`")]
    assert sorted((row[0].split("`")[1], row[1]) for row in rows) == sorted(run)


def test_the_dependencies_are_those_of_the_packages() -> None:
    folders = ("", "patterns/", "patterns/simulation/")
    projects = [tomllib.loads(page_text(f"{folder}pyproject.toml")) for folder in folders]
    npm = [json.loads(page_text(f"{each}/package.json")) for each in ("tests/sdk/javascript", "benchmarks/azurite")]
    requirements = itertools.chain.from_iterable(
        [
            *project["project"]["dependencies"],
            *itertools.chain(*project["project"]["optional-dependencies"].values()),
            *project["build-system"]["requires"],
        ]
        for project in projects
    )
    own = {project["project"]["name"] for project in projects}
    names = {Requirement(requirement).name for requirement in requirements} - own
    expected = sorted([*names, *(name for each in npm for name in each["dependencies"])])
    rows = [row for row in table_rows("docs/dependencies.md") if row[0].startswith("`")]
    assert sorted(row[0].split("`")[1] for row in rows) == expected
    assert all(len(row) == 3 and row[1] and row[2].strip("–") for row in rows), "say why, and instead of what"


def test_the_glossary_names_code_that_exists() -> None:
    names = {name for row in table_rows("docs/glossary.md") for name in re.findall(r"`(\w+)`", row[2])}
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    defined = set(re.findall(r"^ *(?:class|(?:async )?def) (\w+)|^ *(\w+)(?:: \w+)? = ", sources, re.MULTILINE))
    assert len(names) > 40
    assert names - {name for pair in defined for name in pair} == set()


def test_names_are_in_the_modules_that_contributing_states() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    stated = re.findall(r"`(\w+)`\s+in\s+`(src/[\w/]+\.py)`", page)
    missing = [
        name
        for name, path in stated
        if not re.search(rf"^(class )?{name}\b[:( =]", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(stated) >= 5
    assert missing == []


STAR = {
    PreconditionUse.READ: "400",
    PreconditionUse.WRITE: "ignored",
    PreconditionUse.CREATE: "409 without the lease",
    PreconditionUse.COPY: "409",
}
UNMET_READS = {"none_match": "304", "modified_since": "304"}
FIELDS = ("match", "none_match", "modified_since", "unmodified_since", "tags", "tier_modified_since")


def precondition_cells(row: Row) -> list[str]:
    """Return what the protocol's table has for an operation with these preconditions."""
    unmet = UNMET_READS if row.use is PreconditionUse.READ else {}
    known = {header.field for header in row.headers}
    cells = [unmet.get(field, "412") if field in known else "–" for field in FIELDS]
    return [*cells, STAR[row.use] if "none_match" in known else "–", row.lease.value]


def test_preconditions_of_operations() -> None:
    page = "docs/protocol/leases.md"
    known = {name: row for name, row in PRECONDITIONS.items() if row.headers or row.lease is not LeaseUse.IGNORED}
    rows = [row for row in table_rows(page) if len(row) == 9 and row[0].startswith("`")]
    assert rows == [[f"`{name}`", *precondition_cells(row)] for name, row in known.items()]
    _, _, others = " ".join(page_text(page).split()).partition("The others have no preconditions: ")
    assert others.partition(". ")[0] == ", ".join(f"`{name}`" for name in PRECONDITIONS if name not in known)


def test_conditions_on_sources() -> None:
    uses = dict.fromkeys(("PutBlockFromURL", "AppendBlockFromURL", "PutPageFromURL"), SourceUse.PART)
    uses |= {"PutBlobFromURL": SourceUse.PUT, "CopyBlob": SourceUse.COPY}
    outcomes = (Outcome.FAILED, Outcome.NOT_MODIFIED, Outcome.OTHER_TAGS)
    unmet = {name: [UNMET[use][outcome] for outcome in outcomes] for name, use in uses.items()}
    expected = [[f"`{name}`", *(f"{each.status} `{each.code}`" for each in found)] for name, found in unmet.items()]
    assert [row for row in table_rows("docs/protocol/blob-copies.md") if len(row) == 4][1:] == expected
    assert UNMET[SourceUse.SYNC_COPY] == UNMET[SourceUse.COPY]
