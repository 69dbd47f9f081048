"""The supervisors: claim work for an environment and run each item in a sandbox."""
