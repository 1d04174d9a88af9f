"""Which user a connection is from: what the kernel answers, as captured, and the kernel itself."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from payments_async._loopback import peers
from payments_async._loopback.peers import SocketOwner
from tests.support.strangers import nobody_is_known

HERE, PEER = ("127.0.0.1", 42_281), ("127.0.0.1", 45_518)
ANSWER = bytes.fromhex(
    "7c0000001400000001000000b948000002010000b1cea5297f0000010000000000000000000000007f000001"
    "00000000000000000000000000000000db13000000000000000000000000000000000000e803000060350000"
    "05000800"
)
"""Of Linux 6.18, for a socket of user 1000 with inode 13664; its first attribute begins after it."""
TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:A529 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 1055 1 0 100 0
   1: 0100007F:B1CE 0100007F:A529 01 00000000:00000000 00:00000000 00000000  1000        0 13664 1 0 20 4
   2: 0100007F:A529 0100007F:B1CE 01 00000000:00000000 00:00000000 00000000  1001        0 1056 1 0 20 4
   3: 0100007F:B1CF 0100007F:A529 06 00000000:00000000 03:0000176C 00000000     0        0 0 3 0
"""
MAPPED = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue
   0: 0000000000000000FFFF00000100007F:B1CE 0000000000000000FFFF00000100007F:A529 01 00000000:00000000 \
00:00000000 00000000  1000        0 13664 1 0 20 4 30 10 -1
"""
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which user it is")


def changed(at: int, value: bytes) -> bytes:
    """The captured answer with other bytes."""
    return ANSWER[:at] + value + ANSWER[at + len(value) :]


@pytest.mark.parametrize(
    ("message", "owner"),
    [
        (ANSWER, SocketOwner(1000, 13_664)),
        (changed(80, bytes(8)), SocketOwner(0, 0)),  # a peer that has closed its socket
        (changed(16, b"\x0a"), SocketOwner(1000, 13_664)),  # spoken as IPv6
        (changed(17, b"\x0a"), None),  # a listener: the peer has gone, and its port is another's
        (changed(20, b"\xb1\xcf"), None),  # other ports
        (changed(22, b"\xa5\x2a"), None),
        (changed(24, b"\x7f\0\0\2"), None),  # another address
        (changed(24, bytes(10) + b"\xff\xff\x7f\0\0\1"), SocketOwner(1000, 13_664)),
        (bytes.fromhex("5c0000000200000001000000ec210000feffffff") + bytes(72), None),  # ENOENT
        (ANSWER[:60], None),
        (b"", None),
    ],
    ids=range(11),
)
def test_an_answer_names_the_owner_of_the_socket_that_was_asked_for(
    message: bytes, owner: SocketOwner | None
) -> None:
    assert peers.read_answer(message, PEER, HERE) == owner


def test_the_question_names_both_ends_as_the_peer_sees_them() -> None:
    message = peers.question(PEER, HERE)
    assert (len(message), int.from_bytes(message[:4], sys.byteorder)) == (72, 72)
    assert message[24:28] == b"\xb1\xce\xa5\x29"
    assert message[28:32] == message[44:48] == b"\x7f\0\0\1"


@pytest.mark.skipif(sys.byteorder != "little", reason="the tables are in the machine's byte order")
@pytest.mark.parametrize(
    ("table", "port", "owner"),
    [
        (TABLE, 0xB1CE, SocketOwner(1000, 13_664)),
        (TABLE, 0xB1CF, SocketOwner(0, 0)),
        (TABLE, 0xB1D0, None),
        (MAPPED, 0xB1CE, SocketOwner(1000, 13_664)),
        ("", 0xB1CE, None),
        ("   1: 0100007F:B1CE 0100007F:A529 01\n", 0xB1CE, None),
    ],
)
def test_the_tables_name_the_owner_too(table: str, port: int, owner: SocketOwner | None) -> None:
    assert peers.find_in(table.splitlines(), ("127.0.0.1", port), HERE) == owner


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
@pytest.mark.parametrize("missing", ["diagnosed", "listed"])
def test_the_kernel_and_its_tables_know_this_user(
    ends: Ends, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, missing, lambda *_: None)
    assert peers.uid_of(ends[1]) == os.geteuid()
    assert peers.can_tell()


@on_linux
def test_a_caller_that_speaks_ipv6_is_known_by_both() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_INET6) as caller,
    ):
        caller.connect(("::ffff:127.0.0.1", server.getsockname()[1]))
        with server.accept()[0] as line:
            here, peer = line.getsockname(), line.getpeername()
            found = peers.diagnosed(peer, here)
            assert found == peers.listed(peer, here)
            assert found is not None
            assert found.uid == os.geteuid()


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


def test_a_user_of_another_namespace_is_unknown(
    ends: Ends, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where all users of the machine are known, `nobody` is one of them."""
    users = tmp_path / "uid_map"
    monkeypatch.setattr(peers, "_USERS", str(users))
    users.write_text("         0          0 4294967295\n")
    assert peers.can_tell()
    monkeypatch.setattr(peers, "diagnosed", lambda *_: SocketOwner(65_534, 7))
    assert peers.uid_of(ends[1]) == 65_534
    for text in ("0 1000 1\n", "0 1000 1\n1 100000 65536\n"):
        users.write_text(text)
        assert peers.uid_of(ends[1]) is None
        assert not peers.can_tell()
    users.unlink()
    assert not peers.can_tell()
    monkeypatch.setattr(peers, "_OVERFLOW", str(Path(__file__) / "nowhere"))  # then it is the usual one
    assert peers.uid_of(ends[1]) is None


@on_linux
def test_where_neither_may_be_asked_and_on_other_systems_nobody_is_known(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object) -> socket.socket:
        raise PermissionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peers, "_TABLES", ("/proc/nowhere",))
        patch.setattr(peers, "question", forbidden)
        assert peers.uid_of(ends[1]) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "platform", "darwin")
        assert peers.uid_of(ends[1]) is None
        assert not peers.can_tell()
    nobody_is_known(monkeypatch)
    assert not peers.can_tell()
