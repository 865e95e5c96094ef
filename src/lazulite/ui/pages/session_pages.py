"""The sessions: the browsers that are signed in, and what ends that."""

from dataclasses import dataclass

from lazulite.ui.calls import Context, PageCall, PageError, Redirect
from lazulite.ui.sessions import IDLE_SECONDS


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session, as it is listed."""

    number: int
    agent: str
    client: str
    idle_seconds: float
    is_own: bool


async def show_sessions(call: PageCall) -> Context:
    """Return all sessions."""
    sessions = call.services.sessions
    rows = [
        SessionRow(each.number, each.agent, each.client, sessions.idle_seconds(each), each is call.session)
        for each in sessions.all()
    ]
    return {"sessions": rows, "wrong_tokens": sessions.wrong_tokens, "idle_hours": int(IDLE_SECONDS // 3600)}


async def end_session(call: PageCall) -> Redirect:
    """End the session that the form names."""
    number = call.form.get("number", "")
    if not number.isdecimal() or len(number) > 15 or not call.services.sessions.end(int(number)):
        raise PageError(404, "this session has ended already")
    return Redirect("/sessions", f"Session {number} has ended.")


async def sign_out(call: PageCall) -> Redirect:
    """End the session of the request."""
    call.services.sessions.end(call.session.number)
    return Redirect("/sign-in")
