"""What a link between two hosts of the test bed bears: one TCP stream and single round trips.

`hosts_link.py serve HOST` prints a port, and at the end the stream's bits/s.
`hosts_link.py call HOST PORT` prints the round trip of 8 bytes in us.
"""

import socket
import statistics
import sys
import time

ROUNDS = 500
WARM_UP = 0.4  # seconds in which the stream finds its rate
SECONDS = 1.6  # of the stream, with that
PART = 256 << 10


def serve(host: str) -> None:
    with socket.create_server((host, 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        listener.settimeout(30)
        peer = listener.accept()[0]
    peer.settimeout(30)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(ROUNDS):
        peer.sendall(peer.recv(8))
    memory = bytearray(4 * PART)
    peer.recv_into(memory)
    begun = time.monotonic()
    while (first := time.monotonic()) < begun + WARM_UP:
        peer.recv_into(memory)
    total, last = 0, first
    while n := peer.recv_into(memory):
        total, last = total + n, time.monotonic()
    print(total * 8 / (last - first))


def call(host: str, port: str) -> None:
    peer = socket.create_connection((host, int(port)), 30)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        peer.sendall(bytes(8))
        peer.recv(8)
        times.append(time.perf_counter() - begun)
    part, end = bytes(PART), time.monotonic() + SECONDS
    while time.monotonic() < end:
        peer.sendall(part)
    peer.close()
    print(statistics.median(times) * 1e6)


if __name__ == "__main__":
    {"serve": serve, "call": call}[sys.argv[1]](*sys.argv[2:])
