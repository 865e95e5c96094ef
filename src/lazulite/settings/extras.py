"""Check that the packages of an extra are installed, with a message for a user without them."""

from importlib.util import find_spec

EXTRAS = {
    "postgres": ("asyncpg",),
    "metrics": ("prometheus_client",),
    "oidc": ("jwt", "cryptography"),
    "png": ("PIL",),
    "parquet": ("pyarrow",),
}
"""Extra -> the modules that it installs. `otel` is absent: without it, the server runs and reports that it does not
trace (`app.telemetry`)."""


def how_to_install(extra: str) -> str:
    """Return what a user does to install an extra. The public index has no package of this project."""
    return f"in a checkout of Lazulite, run pip install '.[{extra}]'"


def require_extra(extra: str, feature: str) -> None:
    """Check that an extra is installed, without importing it.

    Args:
        extra: a key of `EXTRAS`.
        feature: the subject of the message, such as a flag.

    Raises:
        ValueError: a module is missing. The text is one line and names the extra.
    """
    if any(find_spec(module) is None for module in EXTRAS[extra]):
        raise ValueError(f"{feature} needs the extra {extra}: {how_to_install(extra)}")
