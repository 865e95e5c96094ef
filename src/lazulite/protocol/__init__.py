"""The wire format that all services share: messages, addresses, versions, errors, XML, multipart."""
