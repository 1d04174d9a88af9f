"""Which user a connection is from: what the kernel answers, as captured, and the kernel itself."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from payments_async._loopback import peers
from tests.support.strangers import nobody_is_known

HERE, PEER = ("127.0.0.1", 42_281), ("127.0.0.1", 45_518)
ANSWER = bytes.fromhex(
    "7c0000001400000001000000b948000002010000b1cea5297f0000010000000000000000000000007f000001"
    "00000000000000000000000000000000db13000000000000000000000000000000000000e803000060350000"
    "05000800"
)
"""Of Linux 6.18, for a socket of user 1000 with inode 13664; its first attribute begins after it."""
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which user it is")


def changed(at: int, value: bytes) -> bytes:
    """The captured answer with other bytes."""
    return ANSWER[:at] + value + ANSWER[at + len(value) :]


@pytest.mark.parametrize(
    ("message", "owner"),
    [
        (ANSWER, 1000),
        (changed(80, bytes(8)), None),  # a peer that has closed its socket
        (changed(16, b"\x0a"), 1000),  # spoken as IPv6
        (changed(17, b"\x0a"), None),  # a listener: the peer has gone, and its port is another's
        (changed(20, b"\xb1\xcf"), None),  # other ports
        (changed(22, b"\xa5\x2a"), None),
        (changed(24, b"\x7f\0\0\2"), None),  # another address
        (changed(24, bytes(10) + b"\xff\xff\x7f\0\0\1"), 1000),
        (bytes.fromhex("5c0000000200000001000000ec210000feffffff") + bytes(72), None),  # ENOENT
        (ANSWER[:60], None),
        (b"", None),
    ],
    ids=range(11),
)
def test_an_answer_names_the_owner_of_the_socket_that_was_asked_for(
    message: bytes, owner: int | None
) -> None:
    assert peers.read_answer(message, PEER, HERE) == owner


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection: the caller's and the server's."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as caller,
        server.accept()[0] as line,
    ):
        yield caller, line


Ends = tuple[socket.socket, socket.socket]


@on_linux
def test_the_kernel_knows_this_user(ends: Ends) -> None:
    assert peers.uid_of(ends[1]) == os.geteuid()
    assert peers.can_tell()


@on_linux
def test_a_caller_that_speaks_ipv6_is_known() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_INET6) as caller,
    ):
        caller.connect(("::ffff:127.0.0.1", server.getsockname()[1]))
        with server.accept()[0] as line:
            assert peers.uid_of(line) == os.geteuid()


@on_linux
def test_a_caller_that_has_gone_is_unknown_and_not_root(ends: Ends) -> None:
    caller, line = ends
    caller.close()
    assert peers.uid_of(line) is None


@on_linux
def test_a_connection_that_was_reset_is_unknown_since_its_port_may_be_another_s(ends: Ends) -> None:
    caller, line = ends
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    caller.close()
    assert peers.uid_of(line) is None


@on_linux
@pytest.mark.parametrize(
    ("users", "is_known"),
    [
        ("         0          0 4294967295\n", True),
        ("0 1000 1\n", False),
        ("0 1000 1\n1 100000 65536\n", False),
    ],
)
def test_in_a_namespace_that_does_not_know_every_user_nobody_is_known(
    ends: Ends, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, users: str, is_known: bool
) -> None:
    file = tmp_path / "uid_map"
    file.write_text(users)
    monkeypatch.setattr(peers, "_USERS", str(file))
    assert (peers.uid_of(ends[1]) is not None, peers.can_tell()) == (is_known, is_known)
    file.unlink()
    assert not peers.can_tell()


@on_linux
def test_where_the_kernel_may_not_be_asked_and_on_other_systems_nobody_is_known(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object) -> socket.socket:
        raise PermissionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peers, "question", forbidden)
        assert peers.uid_of(ends[1]) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "platform", "darwin")
        assert peers.uid_of(ends[1]) is None
        assert not peers.can_tell()
    nobody_is_known(monkeypatch)
    assert not peers.can_tell()
