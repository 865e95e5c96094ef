"""Entity group transactions: multipart in, the same operations as single requests in one commit, multipart out."""
