from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from mango_local.addresses import AddressRefused, gateway, listen, url


@pytest.fixture
def opened() -> Iterator[list[socket.socket]]:
    sockets: list[socket.socket] = []
    yield sockets
    for each in sockets:
        each.close()


def test_listens_on_loopback_and_the_bridge(opened: list[socket.socket]) -> None:
    opened += listen(None, 0, bridge="127.0.0.9", development=True)
    names = [each.getsockname()[0] for each in opened]
    assert names[0] == "127.0.0.1"
    assert "127.0.0.9" in names
    assert len({each.getsockname()[1] for each in opened}) == 1
    assert url(opened[0]) == f"http://127.0.0.1:{opened[0].getsockname()[1]}"


def test_leaves_out_a_bridge_that_is_not_of_this_machine(opened: list[socket.socket]) -> None:
    opened += listen(None, 0, bridge="192.0.2.77", development=True)
    assert all(each.getsockname()[0] in ("127.0.0.1", "::1") for each in opened)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.2", "example.com", "172.17.0.1"])
def test_the_development_key_stays_at_home(host: str) -> None:
    with pytest.raises(AddressRefused, match="MANGO_API_KEY"):
        listen(host, 0, bridge="172.17.0.1", development=True)


def test_an_own_key_may_be_served_everywhere(opened: list[socket.socket]) -> None:
    opened += listen("0.0.0.0", 0, bridge=None, development=False)
    assert opened[0].getsockname()[0] == "0.0.0.0"
    assert url(opened[0]).startswith("http://127.0.0.1:")


def test_a_port_in_use_is_told(opened: list[socket.socket]) -> None:
    opened += listen("127.0.0.1", 0, bridge=None, development=True)
    with pytest.raises(AddressRefused, match="another process uses it"):
        listen(None, opened[0].getsockname()[1], bridge=None, development=True)


def test_what_is_no_address_is_told() -> None:
    with pytest.raises(AddressRefused, match="no address"):
        listen("no such host", 0, bridge=None, development=False)


def test_finds_the_bridge_whether_or_not_the_engine_names_it() -> None:
    assert gateway([{"Subnet": "fd00::/64", "Gateway": "fd00::1"}, {"Subnet": "172.18.0.0/16"}]) == "172.18.0.1"
    assert gateway([{"Subnet": "10.9.0.0/24", "Gateway": "10.9.0.254"}]) == "10.9.0.254"
    assert gateway([]) is None
