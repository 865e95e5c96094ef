"""Which requests run by a plan (`service.request_plan`), and which requests make one.

Invariants:
- only a request that went the long way and succeeded makes a plan, once its words come a second time: words that never
  come again cost no plan, and evict none;
- there is no plan for bearer tokens, stored access policies, address ranges, `timeout` or Content-MD5;
- a plan applies only while the account is the same object, and the credentials are valid.
"""

from dataclasses import replace
from typing import Generic

from lazulite.auth.accounts.account import Account
from lazulite.auth.authenticator import Authenticator
from lazulite.engine.contract import Clock
from lazulite.protocol.message import Request, Response
from lazulite.protocol.version import RequestVersion
from lazulite.service.definition import CallT
from lazulite.service.request_plan import MatchedPlan, RequestPlan, RequestPlans, settled_request
from lazulite.service.routing import Route


class Planner(Generic[CallT]):
    """Finds and makes the plans of one service.

    Args:
        plans: the plans.
        authenticator: has checked the credentials of each request that makes a plan.
        clock: the time now.
    """

    def __init__(self, plans: RequestPlans, authenticator: Authenticator, clock: Clock) -> None:
        self._plans = plans
        self._authenticator = authenticator
        self._clock = clock

    def match(self, request: Request, now: int) -> MatchedPlan | None:
        """Return the plan by which a request can run at the time `now`, its credentials checked.

        None: the request goes the long way.
        """
        matched = self._plans.find(request)
        if matched is None:
            return None
        plan = matched.plan
        if self._authenticator.is_current(plan.account) and plan.credentials.hold(request, now):
            return matched
        return None

    def cache(self, call: CallT, account: Account, route: Route[CallT], version: RequestVersion) -> None:
        """Cache the plan of a request that succeeded, if its words settle enough and came before.

        A request that has a plan goes the long way, too, if its server did not ask for a response at once.
        """
        request, parameters = call.request, call.parameters
        if route.plan is None or "timeout" in parameters or "content-md5" in request.headers:
            return
        now = self._clock()
        if self.match(request, now) is not None or not self._plans.takes(request, call.resource.keys):
            return
        credentials = self._authenticator.cacheable(account, request, parameters, call.grant)
        if credentials is None or not credentials.hold(request, now):
            return
        operation = route.plan(replace(call, request=settled_request(request)))
        if operation is not None:
            plan = RequestPlan(account, credentials, parameters, version, route.operation, route.body, operation)
            self._plans.put(request, plan)


def note(request: Request, matched: MatchedPlan) -> None:
    """Note what a plan tells of its request, also that its credentials are good, before the operation runs."""
    request.plan, plan = matched, matched.plan
    record = request.record
    record.version, record.account, record.operation = plan.version.governing, plan.account.name, plan.operation_name
    request.authenticated = True


async def run_plan(request: Request, matched: MatchedPlan) -> Response:
    """Respond to a request by its plan, which was noted. Raises as the operation."""
    plan, keys = matched
    if plan.body_bytes_max:
        await request.receive_body(plan.body_bytes_max)
    return await plan.operation.run(request, keys)
