"""Where requests are passed to, read from a URL."""

from __future__ import annotations

import pytest

from mango_local.upstream import GatewayRefused, Upstream


@pytest.mark.parametrize(
    ("url", "origin", "prefix", "host", "near"),
    [
        ("https://abc.execute-api.eu-west-1.amazonaws.com/prod", "https://abc.execute-api.eu-west-1.amazonaws.com",
         "/prod", "abc.execute-api.eu-west-1.amazonaws.com", False),
        ("http://abc.execute-api.localhost:4566/local/", "http://127.0.0.1:4566", "/local",
         "abc.execute-api.localhost:4566", True),
        ("http://localhost:4566/_aws/execute-api/abc/local", "http://127.0.0.1:4566", "/_aws/execute-api/abc/local",
         "localhost:4566", True),
        ("http://[::1]:80", "http://[::1]:80", "", "[::1]:80", True),
        (" http://10.0.0.7 ", "http://10.0.0.7", "", "10.0.0.7", False),
    ],
)  # fmt: skip
def test_urls(url: str, origin: str, prefix: str, host: str, near: bool) -> None:
    upstream = Upstream.read(url)
    assert (upstream.origin, upstream.prefix, upstream.host, upstream.near) == (origin, prefix, host, near)


@pytest.mark.parametrize(
    "url",
    ["", "abc", "ftp://h", "http://", "http://h:x", "http://u:secret@h", "http://h/?a=b", "http://h/#x", "http://["],
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(GatewayRefused) as raised:
        Upstream.read(url)
    assert "secret" not in str(raised.value)
