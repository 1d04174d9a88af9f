"""Which user of this machine a connection is from, as Linux knows it.

The kernel's socket diagnosis (sock_diag(7)) takes one question about a socket, named by its two ends. Every
other system, a kernel that may not be asked, and every doubt is "unknown".
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Final

from . import HOST

Address = tuple[str, int]

_DIAGNOSIS: Final = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY: Final = 20  # SOCK_DIAG_BY_FAMILY: the type of the question and of its answer
_REQUEST: Final = 1  # NLM_F_REQUEST
_HEADER: Final = struct.Struct("=IHHII")
_QUESTION: Final = struct.Struct("=BBBBI")
_PORTS: Final = struct.Struct("!HH")
_ANY: Final = struct.pack("=III", 0, 0xFFFF_FFFF, 0xFFFF_FFFF)  # any interface, any cookie
_ANSWER: Final = struct.Struct("=BBBB4s16s16s12s12xII")
"""Family, state, timer, retransmissions, ports, the two addresses, interface and cookie; uid and inode."""
_LISTENING: Final = 10  # TCP_LISTEN: a listener on the port of a peer that has gone
_USERS: Final = "/proc/self/uid_map"
_ALL_USERS: Final = ["0", "0", "4294967295"]


def uid_of(line: socket.socket) -> int | None:
    """The user at the other end of a connection within this machine; None where that is not known.

    `line` is this end of it, of which only the descriptor is used.
    """
    if sys.platform != "linux" or not _knows_all_users():
        return None
    with suppress(OSError), socket.socket(fileno=os.dup(line.fileno())) as own:
        here, peer = own.getsockname(), own.getpeername()
        uid = diagnosed(peer, here)
        own.getpeername()  # OSError: it ended meanwhile, and its port may be another user's by now
        return uid
    return None


def can_tell() -> bool:
    """True if this machine says which user a connection is from: it is asked about one of our own."""
    with (
        socket.create_server((HOST, 0)) as listener,
        socket.create_connection(listener.getsockname()) as _,
        listener.accept()[0] as line,
    ):
        return uid_of(line) is not None


def diagnosed(local: Address, remote: Address) -> int | None:
    """Ask the kernel for the user of the socket with these ends; None where it does not say."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _DIAGNOSIS) as kernel:
            kernel.sendto(question(local, remote), (0, 0))
            return read_answer(kernel.recv(8192), local, remote)
    except OSError:
        return None


def question(local: Address, remote: Address) -> bytes:
    """The netlink message that asks for one TCP socket."""
    ends = (socket.inet_aton(address).ljust(16, b"\0") for address, _ in (local, remote))
    asked = _QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFFF_FFFF)
    body = asked + _PORTS.pack(local[1], remote[1]) + b"".join(ends) + _ANY
    return _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body


def read_answer(message: bytes, local: Address, remote: Address) -> int | None:
    """The user that an answer names; None for an error, and for another socket than was asked for.

    Where its process has closed a socket, inode and uid are 0, which says nothing.
    """
    if len(message) < _HEADER.size + _ANSWER.size or _HEADER.unpack_from(message)[1] != _BY_FAMILY:
        return None
    _, state, _, _, ports, here, there, _, uid, inode = _ANSWER.unpack_from(message, _HEADER.size)
    found = tuple(zip((_plain(here), _plain(there)), _PORTS.unpack(ports), strict=True))
    return int(uid) if inode and state != _LISTENING and found == (local, remote) else None


def _plain(address: bytes) -> str:
    """An address as text, IPv4 also where an IPv6 socket speaks it."""
    mapped = IPv6Address(address).ipv4_mapped
    return str(mapped or IPv4Address(address[:4]))


def _knows_all_users() -> bool:
    """True if each user of the machine has a uid of its own in this namespace: else many share one."""
    try:
        return Path(_USERS).read_text(encoding="ascii").split() == _ALL_USERS
    except OSError:
        return False
