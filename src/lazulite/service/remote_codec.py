"""Encodes the rejection that all services share for another process: see `engine.remote.codec`."""

from lazulite.engine.remote.channel import Plain
from lazulite.engine.remote.codec import Encoding
from lazulite.protocol.errors import ServiceError


def encode_service_error(error: ServiceError) -> Plain:
    """Return an error as plain values."""
    return error.code, error.message, error.status


def decode_service_error(payload: Plain) -> ServiceError:
    """Return the error that was encoded."""
    code, message, status = payload
    return ServiceError(code, message, status=status)


SERVICE_REJECTIONS = (Encoding(ServiceError, encode_service_error, decode_service_error),)
