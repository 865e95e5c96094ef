"""The explorer: pages by which a browser looks at the accounts of a running server, on a listener of its own.

How to add a page:

1. Write `async def show(call: PageCall) -> Context` in a module of `ui/pages`. The context is a dictionary of texts,
   numbers, lists, named tuples and dataclasses. It is both what the template shows and the page's twin at `.json`.
   Keys of accounts never get into it. Reads go through `call.service("table").send("GET", "Tables")`: signed
   requests, whose rejections (`BackendError`) become error pages. `call.command` sends commands of the control channel.
   A function that returns a `Response` is a download, which has no template and no twin.
2. Write a template in `ui/templates` that extends `base.html`: blocks `actions` (of the title line) and `content`.
   `link(path, **parameters)` makes URLs; parameters that the path does not name become the query. The macros of
   `macros.html` are forms (`form`, `field`), `pager` and `empty`. Nothing is inline: no script, no `style=`.
3. Add a `Route` to `ROUTES` (`ui/routes.py`): path, title, function, template; `navigation` puts it into the rail. A
   path names accounts, tables, queues and containers only. Names of blobs and keys of entities go into the query.
4. Changes are actions, by POST: `async def act(call: PageCall) -> Redirect`, in `actions={"rename": Action(act)}`.
   The template has `{% call form(post_to("rename")) %}…{% endcall %}`: the same URL with `do=rename`, and the token
   against forgery. `call.form` has the fields. `Redirect(where, notice)` shows a line on the next page;
   `PageView(context, status)` shows the page once more, with what was entered.
   `Action(upload, reads_body=True)` gets `call.request`, whose body it reads itself; a script sends it with the header
   `X-CSRF-Token`, from `<meta name="csrf">`. `Action(…, changes=False)` is allowed by `--ui-read-only`, too.
5. `call.page_of("next")` is the continuation token that the pager put into the URL; `pager(next, seen)` shows it.
6. What takes longer than a few seconds is a job: `Redirect.to_job(call.jobs.start(title, work))`, where
   `async def work(job: Job)` calls `await job.step(count)` now and then, and `job.say(text)`.

Pages read without scripts. A script is an ES module in `ui/static`, named in the block `scripts`.
"""
