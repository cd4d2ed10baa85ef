"""Every all-reduce algorithm over 64 ranks: counted, and a first estimate of the time.

time = steps x alpha + bytes of the busiest rank x beta, which leaves out congestion and ports.
"""

import roundelay as rl

N = 64
ALPHA = 10e-6  # seconds a step, assumed
BETA = 1 / 50e9  # seconds a byte: 50 GB/s in one direction, assumed
SIZES = {"64 KB": 64_000, "16 MB": 16_000_000, "1 GB": 1_000_000_000}


def milliseconds(count, size):
    """The estimate, from a count for one byte."""
    return 1e3 * (count.steps * ALPHA + float(count.bytes_sent_max) * size * BETA)


head = "".join(f"{name:>11}" for name in SIZES)
print(f"{'algorithm':20} {'steps':>6} {'messages':>9} {'bytes / S':>10}{head}   ms")
for algorithm in rl.algorithms("all_reduce"):
    count = rl.cost(algorithm(N), size=1, with_depth=False)
    times = "".join(f"{milliseconds(count, size):11.3f}" for size in SIZES.values())
    print(
        f"{algorithm.name:20} {count.steps:6} {count.messages_max:9} "
        f"{float(count.bytes_sent_max):10.4g}{times}"
    )

least = rl.bound("all_reduce", N)
print(f"{'least, one port':20} {least.steps:6} {'':9} {float(least.bytes_sent_max):10.4g}")
