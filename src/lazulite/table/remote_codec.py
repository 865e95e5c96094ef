"""Encodes the commit functions of this service, and their rejections, for another process: see `engine.remote.codec`.

The service has two commit functions of its own: the write of one entity, and the writes of several entities.
"""

from lazulite.engine.remote.channel import Plain
from lazulite.engine.remote.codec import Encoding
from lazulite.service.remote_codec import decode_service_error, encode_service_error
from lazulite.table.operations.write_decisions import WRITES, ApplyAll, ApplyOne, EntityWrite, WriteRejectedError

_NUMBERS = {kind: number for number, kind in enumerate(WRITES)}


def _encode_write(write: EntityWrite) -> Plain:
    return (
        _NUMBERS[write.kind],
        write.partition_key,
        write.row_key,
        write.condition,
        write.keys,
        write.encoded,
    )


def _decode_write(payload: Plain) -> EntityWrite:
    number, *rest = payload
    return EntityWrite(WRITES[number], *rest)


def _encode_rejection(rejection: WriteRejectedError) -> Plain:
    return rejection.index, encode_service_error(rejection.error)


def _decode_rejection(payload: Plain) -> WriteRejectedError:
    index, error = payload
    return WriteRejectedError(index, decode_service_error(error))


TABLE_COMMITS = (
    Encoding(ApplyOne, lambda one: _encode_write(one.write), lambda payload: ApplyOne(_decode_write(payload))),
    Encoding(
        ApplyAll,
        lambda several: [_encode_write(write) for write in several.writes],
        lambda payload: ApplyAll([_decode_write(each) for each in payload]),
    ),
)
TABLE_REJECTIONS = (Encoding(WriteRejectedError, _encode_rejection, _decode_rejection),)
