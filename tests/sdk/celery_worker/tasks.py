"""Tasks of Celery that tell the test of each step, and go on once the test answers.

Nothing but Celery and the standard library is imported, as the environment holds Celery with its transport alone.
"""

import os
import sys
from multiprocessing.connection import Client

from celery import Celery

app = Celery("tasks", broker=os.environ["BROKER_URL"])
app.conf.update(
    broker_connection_retry_on_startup=True,
    broker_transport_options={"queue_name_prefix": os.environ["QUEUE_PREFIX"]},
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
)


def tell(*event):
    """Tell the test of an event; return once it answers."""
    with Client(os.environ["EVENTS"], authkey=b"test") as connection:
        connection.send((os.getpid(), *event))
        connection.recv()


@app.task
def add(one, other):
    """Tell the sum."""
    tell("sum", one + other)


@app.task(bind=True, max_retries=5)
def flaky(self, failures):
    """Fail so many times, and be retried."""
    tell("try", self.request.retries)
    if self.request.retries < failures:
        raise self.retry(countdown=0)


@app.task(acks_late=True, reject_on_worker_lost=True)
def stubborn(number):
    """Tell the begin and the end."""
    tell("begin", number)
    tell("end", number)


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    app.send_task(f"tasks.{name}", [int(each) for each in arguments])
