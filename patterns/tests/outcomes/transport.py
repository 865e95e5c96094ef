"""A transport of the SDK that loses requests and answers."""

from collections.abc import Iterable
from enum import Enum
from typing import Any

from azure.core.exceptions import ServiceRequestError, ServiceResponseError
from azure.core.pipeline.transport import AioHttpTransport, RequestsTransport


class Loss(Enum):
    """What happens to one request."""

    NONE = "it is answered"
    NEVER_SENT = "it does not reach the service"
    ANSWER_LOST = "the service does it, and the connection breaks"
    ERROR_AFTER = "the service does it, and answers 500"


class LossyTransport(RequestsTransport):  # type: ignore[misc] # azure-core loads it lazily, without a type
    """Loses as its list says, one for each request; and counts requests."""

    def __init__(self, losses: Iterable[Loss] = ()) -> None:
        super().__init__()
        self.losses = list(losses)
        self.methods: list[str] = []

    def send(self, request: Any, **options: Any) -> Any:
        self.methods.append(request.method)
        loss = self.losses.pop(0) if self.losses else Loss.NONE
        if loss is Loss.NEVER_SENT:
            raise ServiceRequestError("not sent")
        response = super().send(request, **options)
        if loss is Loss.ANSWER_LOST:
            response.internal_response.close()
            raise ServiceResponseError("lost")
        return _failed(response) if loss is Loss.ERROR_AFTER else response


class AsyncLossyTransport(AioHttpTransport):  # type: ignore[misc] # as above
    """The same, asynchronous."""

    def __init__(self, losses: Iterable[Loss] = ()) -> None:
        super().__init__()
        self.losses = list(losses)

    async def send(self, request: Any, **options: Any) -> Any:
        loss = self.losses.pop(0) if self.losses else Loss.NONE
        if loss is Loss.NEVER_SENT:
            raise ServiceRequestError("not sent")
        response = await super().send(request, **options)
        if loss is Loss.ANSWER_LOST:
            response.internal_response.close()
            raise ServiceResponseError("lost")
        return _failed(response) if loss is Loss.ERROR_AFTER else response


def _failed(response: Any) -> Any:
    response.status_code = 500
    response.reason = "Internal Server Error"
    return response
