"""The Table service: its definition, for the kernel that all services share."""

from lazulite.service.definition import ServiceDefinition, ServiceDependencies
from lazulite.service.kernel import ServiceKernel
from lazulite.table.call import Call, Context, make_context
from lazulite.table.credentials import TABLE_CREDENTIALS
from lazulite.table.errors import MESSAGES
from lazulite.table.operations.write_decisions import APPLY_ALL, APPLY_ONE, REJECTION
from lazulite.table.rejection import reject
from lazulite.table.resource import USUAL_PATH, Resource, effective_method, resource_of
from lazulite.table.routes import ROUTES, component
from lazulite.table.verification import TABLES_SPACE

SERVER = "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"
"""Some SDKs look at it."""

TABLE: ServiceDefinition[Context, Resource, Call] = ServiceDefinition(
    name="table",
    server=SERVER,
    credentials=TABLE_CREDENTIALS,
    routes=ROUTES,
    parse_resource=resource_of,
    make_context=make_context,
    make_call=Call,
    component=component,
    method=effective_method,
    reject=reject,
    messages=MESSAGES,
    keyed_path=USUAL_PATH,
    spaces=(TABLES_SPACE,),
    dropped_code="TableNotFound",
    commits=(APPLY_ONE, APPLY_ALL),
    rejections=(REJECTION,),
)


class TableService(ServiceKernel[Context, Resource, Call]):
    """The Table service on one engine.

    Args:
        dependencies: of the process.
    """

    def __init__(self, dependencies: ServiceDependencies) -> None:
        super().__init__(TABLE, dependencies)
