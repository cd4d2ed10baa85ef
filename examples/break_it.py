"""Break a ring in four ways, and see what the verifier says."""

from dataclasses import replace

import roundelay as rl

ring = rl.build("all_reduce/ring", 4)
add, share = ring

broken = {
    "one repetition too few": [replace(add, times=2), share],
    "pieces move the wrong way": [replace(add, shift=1), share],
    "the second round adds again": [add, replace(share, op=rl.REDUCE)],
    "two ranks swapped": [add, replace(share, dst=[2, 1, 3, 0])],
}

for what, rounds in broken.items():
    verdict = rl.verify(replace(ring, rounds=rounds))
    found = verdict.counterexample
    print(f"{what}:\n  {verdict.reason}")
    print(f"  missing {found.missing}, doubled {found.doubled}, round {found.round}")

print("a rank that does not exist:")
try:
    replace(ring, rounds=[add, replace(share, dst=[1, 2, 3, 4])])
except rl.RoundelayError as error:
    print(f"  {error}")

print("a rank sends what it does not have:")
try:
    rl.verify(rl.Schedule("broadcast", 3, 1, [rl.Round(1, 2, 0), rl.Round(0, 1, 0)]))
except rl.RoundelayError as error:
    print(f"  {error}")
