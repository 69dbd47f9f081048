"""Server-sent events: the committed history of a thread, followed as it grows (docs/architecture.md, section 7)."""
