"""The environment worker: supervisors that claim work, the item process that runs a session's tools, the tools."""
