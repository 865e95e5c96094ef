"""The jobs: what runs, how far it is, and what stops it."""

from lazulite.protocol.message import Response
from lazulite.ui.calls import Context, PageCall, PageError, Redirect
from lazulite.ui.files import FileContent
from lazulite.ui.jobs import Job


async def list_jobs(call: PageCall) -> Context:
    """Return all jobs, the newest first."""
    return {"jobs": call.jobs.all()}


async def show_job(call: PageCall) -> Context:
    """Return one job. Its script asks for the JSON of this until the job has ended."""
    job = _job(call)
    return {"job": job, "has_ended": job.has_ended}


async def stop_job(call: PageCall) -> Redirect:
    """Stop a job; what it has done stays done."""
    job = _job(call)
    call.jobs.stop(job.id)
    return Redirect(f"/jobs/{job.id}")


async def download_file(call: PageCall) -> Response:
    """Return the file that a job has made."""
    job = _job(call)
    if job.file is None or not job.has_ended:
        raise PageError(404, "the job has no file, or none any more")
    headers = [
        ("Content-Type", "application/octet-stream"),
        ("Content-Disposition", f'attachment; filename="{job.file_name}"'),
        ("Content-Security-Policy", "sandbox"),
    ]
    return Response(200, headers, content=FileContent(job.file))


def _job(call: PageCall) -> Job:
    number = call.parameters["number"]
    job = call.jobs.get(int(number)) if number.isdecimal() and len(number) < 10 else None
    if job is None:
        raise PageError(404, f"there is no job {number[:20]}, or none any more")
    return job
