"""The pages of the explorer: one row each, in the order of the rail."""

from lazulite.ui.calls import Action, Route
from lazulite.ui.pages.job_pages import list_jobs, show_job, stop_job
from lazulite.ui.pages.overview import show_overview
from lazulite.ui.pages.session_pages import end_session, show_sessions, sign_out

ROUTES = (
    Route(path="/", title="Overview", show=show_overview, template="overview.html", navigation="Overview"),
    Route(
        path="/jobs",
        title="Jobs",
        show=list_jobs,
        template="jobs.html",
        navigation="Jobs",
    ),
    Route(
        path="/jobs/{number}",
        title="Job {number}",
        show=show_job,
        template="job.html",
        actions={"stop": Action(stop_job, changes=False)},
    ),
    Route(
        path="/sessions",
        title="Sessions",
        show=show_sessions,
        template="sessions.html",
        navigation="Sessions",
        actions={"end": Action(end_session, changes=False), "sign-out": Action(sign_out, changes=False)},
    ),
)
"""Literal parts of paths win over parameters by the order of the rows."""
