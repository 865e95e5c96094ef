"""Where the targets of the Queue service start."""

_BODY = "<QueueMessage><MessageText>{}</MessageText></QueueMessage>"


def messages() -> list[str]:
    texts = ["", "a", " a\n b ", "&lt;&amp;&#x9;&#xD;&#10;", "<![CDATA[<a>]]>", "\u00fc\u20ac\U0001f600", "QUJD" * 8]
    texts += ["a" * 65_536, "a" * 65_537, "&amp;" * 13_000, "&#1;", "\ufffe", "<a/>", "]]>", "<!-- c -->x<?pi?>"]
    bodies = [_BODY.format(text) for text in texts]
    bodies += ['<?xml version="1.0" encoding="utf-16"?>' + bodies[1], "\ufeff" + bodies[1], "", "x", bodies[1] * 2]
    bodies += ["<QueueMessage/>", "<Message><MessageText>a</MessageText></Message>", bodies[1].replace("Text", "Body")]
    bodies += ['<!DOCTYPE x [<!ENTITY a "b">]>' + _BODY.format("&a;"), _BODY.format("&b;")]
    bodies += ['<q:QueueMessage xmlns:q="u"><q:MessageText>a</q:MessageText></q:QueueMessage>']
    bodies += ["<QueueMessage>" + "<MessageText>" * 40, _BODY.format("<MessageText>a</MessageText>")]
    heads = ["put", "put visibilitytimeout=0&messagettl=-1", "update"]
    short = [f"{head}\n{body}" for head in heads for body in bodies if len(body) < 60_000]
    return short + [f"put\n{body}" for body in bodies if len(body) >= 60_000]


def queues() -> list[str]:
    message = "jobs/messages/{id}?popreceipt={receipt}"
    lines = ["GET ?comp=list", "GET ?comp=list&prefix=jo&maxresults=1&include=metadata&marker=jobs"]
    lines += ["GET ?restype=service&comp=properties", "GET ?restype=service&comp=stats", "OPTIONS jobs"]
    lines += ["PUT jobs", "PUT new\nx-ms-meta-Name: value\nx-ms-meta: {'a': 1}", "DELETE jobs", "DELETE other"]
    lines += [
        "GET jobs?comp=metadata",
        "HEAD jobs?comp=metadata",
        "PUT jobs?comp=metadata\nx-ms-meta-b: 2\nx-ms-meta-:",
    ]
    lines += ["GET jobs?comp=acl", "PUT jobs?comp=acl\n\n<SignedIdentifiers />", "PUT a--b", "PUT -a", "PUT AB%C3%BC"]
    lines += [f"PUT {'a' * 64}", f"PUT jobs?comp=metadata\nx-ms-meta-a: {'x' * 4000}", "DELETE jobs/messages"]
    lines += ["GET jobs/messages?numofmessages=32&visibilitytimeout=604800", "GET jobs/messages?peekonly=True"]
    lines += [f"GET jobs/messages?{name}={'9' * 2000}" for name in ("numofmessages", "visibilitytimeout", "timeout")]
    lines += [f"POST jobs/messages?messagettl={text}\n\n{_BODY.format('a')}" for text in ("0", "-1", "-2", "+5", "1e3")]
    lines += [f"DELETE {message}", f"PUT {message}&visibilitytimeout=0", f"PUT {message}\n\n{_BODY.format('a')}"]
    lines += ["DELETE jobs/messages/{id}?popreceipt=AgAAAAMAAAAAAAAAAAAAAAAAAAA%3D", "DELETE other/messages/{id}"]
    lines += ["DELETE other/messages/{id}?popreceipt={receipt}", "DELETE jobs/messages/x?popreceipt={receipt}"]
    lines += [f"DELETE {message}\nx-ms-version: {version}" for version in ("2009-07-17", "2011-08-18", "2030-01-01")]
    return [*lines, "POST ?restype=service&comp=userdelegationkey\nx-ms-version: 2026-02-06\n\n<KeyInfo/>"]
