"""How the example fails."""


class ExampleFailed(Exception):
    """The example cannot succeed any more; the message tells why, in words for whoever runs it."""
