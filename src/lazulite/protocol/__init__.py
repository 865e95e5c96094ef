"""What the Table, Queue and Blob services share: messages, errors, authorization, CORS, XML."""
