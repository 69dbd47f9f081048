"""The tools that run in a session's workspace."""
