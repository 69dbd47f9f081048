"""Scripts for `ScriptedModel`, one a file; each has `respond(request) -> ModelAnswer`."""
