"""The exporters of spans, from OpenTelemetry's own variables."""

from collections.abc import Mapping

TRACE_ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""Environment variables with the collector's URL for spans."""
TRACE_PROTOCOL_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
TRACE_PROTOCOL = "http/protobuf"
"""The only supported protocol for spans."""


def trace_exporters_from(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the exporters of spans that OpenTelemetry's variables select. An endpoint alone selects `otlp`.

    With a protocol other than `TRACE_PROTOCOL`, the name is `otlp by PROTOCOL`, which no exporter has.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ()
    default = "otlp" if any(environ.get(name, "").strip() for name in TRACE_ENDPOINT_VARIABLES) else ""
    named = environ.get("OTEL_TRACES_EXPORTER", "").strip() or default
    protocols = (environ.get(name, "").strip() for name in TRACE_PROTOCOL_VARIABLES)
    protocol = next(filter(None, protocols), TRACE_PROTOCOL)
    otlp = "otlp" if protocol == TRACE_PROTOCOL else f"otlp by {protocol}"
    names = [otlp if name.strip() == "otlp" else name.strip() for name in named.split(",")]
    return tuple(dict.fromkeys(name for name in names if name not in ("", "none")))
