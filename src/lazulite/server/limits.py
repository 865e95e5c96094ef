"""Every bound of the server, as named settings.

Invariants: a name ends with its unit; every field has a docstring that says what happens at the bound; nothing that a
client sends is kept beyond them.
"""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one server accepts from its clients, and how long it waits for them."""

    connections: int = 20_000
    """Connections at a time, with those whose client left while its request still runs. One more: 503 `ServerBusy`."""

    pipelined_requests: int = 16
    """Requests of one connection that wait behind the running one. Then reading stops until one is answered."""

    url_bytes: int = 64 * KIB
    """Length of the request target. Over: 414 `InvalidUri`."""

    header_count: int = 100
    """Header fields of a request; trailer fields also. Over: 431 `InvalidHeaderValue`."""

    headers_bytes: int = 64 * KIB
    """Sum of the header fields, names and separators included; also what chunk extensions may add. Over: 431."""

    body_bytes: int = 8 * MIB
    """Request body that is held whole: that of the longest block list. Each operation has a limit of its own besides.
    Over: 413 `RequestBodyTooLarge`, answered at once."""

    buffered_bytes: int = 256 * MIB
    """Bodies of requests with good credentials, over all connections. One more waits; 503 `ServerBusy` at last."""

    unaccepted_body_bytes: int = 16 * MIB
    """Bodies of requests whose credentials are not checked yet. Over: the oldest one's connection is closed."""

    unauthenticated_bytes: int = 40 * MIB
    """All input and output held of connections without good credentials so far. Over: the oldest one is closed."""

    authenticated_bytes: int = 512 * MIB
    """The same of the other connections, with responses that are made whole. Over: the oldest one is closed."""

    window_bytes: int = 128 * MIB
    """Windows of blobs that are sent to clients with good credentials. Over: the next window waits for its turn; a
    response that has not begun after `request_seconds` is 503 `ServerBusy`."""

    public_window_bytes: int = 64 * MIB
    """The same for clients without credentials."""

    discarded_bytes: int = 64 * MIB
    """Bytes read and dropped of a rejected body, so that its sender can read the rejection. Over: disconnect."""

    keep_alive_idle_seconds: float = 120
    """How long a connection may rest between requests. Over: closed."""

    tls_handshake_seconds: float = 10
    """From a connection's arrival at the HTTPS port to the end of its TLS handshake. Over: disconnected."""

    header_read_seconds: float = 30
    """From the first byte of a head to its last. Over: 408, closed."""

    body_stall_seconds: float = 30
    """How long no byte of a body may come while it is waited for. Over: 408, closed."""

    slow_body_seconds: float = 10
    """How long a body may come as slowly as its client likes."""

    body_bytes_per_second: int = KIB
    """What has to come of a body for each second after that. Less: 408, closed."""

    crowded_body_bytes_per_second: int = 64 * KIB
    """The same after the first second, while other requests wait for room for their bodies."""

    request_seconds: float = 30
    """How long the service may take. Over: 500 `OperationTimedOut`, closed; the operation itself is never cut short."""

    write_stall_seconds: float = 30
    """How long a client may take no byte of a response that waits for it. Over: disconnected."""

    crowded_window_seconds: float = 5
    """How long a client may take for a window, while others wait for theirs. Over: disconnected."""

    linger_seconds: float = 10
    """How long a rejected sender is listened to after the rejection, lest a reset destroys it. Over: disconnected."""

    tls_close_seconds: float = 2
    """How long a stopping server waits for a client to confirm the end of a TLS connection. Over: disconnected."""

    drain_delay_seconds: float = 0
    """How long a stopping server goes on, `/health` and the end of each connection after its next answer excepted."""

    first_request_seconds: float = 1
    """How long a stopping server waits for the first request of a connection that is no older. Over: closed."""

    drain_seconds: float = 25
    """How long a stopping server waits for the requests in flight. Over: they are cancelled."""
