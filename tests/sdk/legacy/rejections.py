"""Rejections by the service, as the SDKs between 2016 and 2020 raise them; clients that never retry."""

from azure.common import AzureConflictHttpError, AzureHttpError, AzureMissingResourceHttpError

KINDS = {404: AzureMissingResourceHttpError, 409: AzureConflictHttpError}


def without_retries(service):
    service.retry = lambda context: None
    return service


def rejected(status, code, act, *arguments, **keywords):
    """Expect the SDK's exception for a status, with the service's code in its text."""
    try:
        act(*arguments, **keywords)
    except AzureHttpError as error:
        assert type(error) is KINDS.get(status, AzureHttpError), type(error)
        assert error.status_code == status, (error.status_code, str(error))
        assert code in str(error), str(error)
        return
    raise AssertionError(f"not rejected with {status} {code}")
