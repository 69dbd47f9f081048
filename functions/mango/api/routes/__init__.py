"""The routes, one file per resource. Each only reads the request, calls its use case, and answers."""
