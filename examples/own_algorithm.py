"""An algorithm of one's own with its cost card, proved for many n; `roundelay verify` takes it too.

A star on two centres: ranks with an even number give their data to rank 0, the others to rank 1;
these two exchange, and give the sum back.
"""

import numpy as np

import roundelay as rl


@rl.algorithm(
    "all_reduce",
    messages="max(1, ceil(n/2) - 1) + (n > 2)",
    bytes_sent="S*(max(1, ceil(n/2) - 1) + (n > 2))",
    steps="1 + 2*(n > 2)",
    good="a few bytes between few ranks",
    bad="everything else",
    source="made up for this example",
)
def two_stars(n):
    rank = np.arange(2, n)
    centre = rank % 2
    return rl.Schedule(
        "all_reduce",
        n,
        1,
        [
            rl.Round(rank, centre, 0, rl.REDUCE),
            rl.Round([0, 1], [1, 0], 0, rl.REDUCE) if n > 1 else rl.Round([], [], []),
            rl.Round(centre, rank, 0, rl.COPY),
        ],
    )


if __name__ == "__main__":
    wrong = [n for n in range(1, 34) if not rl.prove(two_stars, n).ok]
    print(f"wrong for n = {wrong}" if wrong else "proved for n = 1 to 33, with its cost card")
    verdict = rl.prove(two_stars, 8)
    print(f"same bits on all ranks: {verdict.same_bits}; order of sums: {verdict.summation}")
    print(rl.show(two_stars(5)))
