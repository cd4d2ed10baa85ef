"""A job that exchanges data all the while strangers are at its doors."""

import hashlib
import json
import os

import pytest
from ranks import finish, start
from siege import Siege

SECRET = "a secret"
FRAMES = 2_000
MANY = int(os.environ.get("ROUNDELAY_SIEGE_FRAMES", "1000000"))


def key_of(secret):
    """As `secret_of` makes it."""
    whole = hashlib.sha256(b"roundelay")
    for part in (b"secret", secret.encode()):
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.digest()


def hold_out(folder, frames, seconds):
    """What the siege met; the job must bear it, and end as it began."""
    processes = start("besieged", 3, str(folder), module="wire_programs", nodes="abc",
                      environ={"ROUNDELAY_SECRET": SECRET})  # fmt: skip
    try:
        told = [json.loads(p.stdout.readline()) for p in processes]
        doors, nonce = told[0]
        siege = Siege([tuple(door) for door in doors], key_of(SECRET), bytes.fromhex(nonce))
        siege.run(frames, seconds)
    finally:
        (folder / "stop").touch()
        codes, said = finish(processes)
    assert codes == [0] * 3, said
    print(dict(siege.met), said)
    for text in said:
        (descriptors, memory), (descriptors_after, memory_after), _ = json.loads(text)
        assert descriptors_after <= descriptors
        assert memory_after - memory < 32 << 20
    assert siege.met["ADMITTED"] == 0
    return siege.met


KINDS = ("random", "changed", "cut", "silent", "replay", "no_key")


def test_strangers_at_the_doors_of_a_running_job(tmp_path):
    met = hold_out(tmp_path, FRAMES, 60)
    assert all(met[kind] for kind in KINDS), met
    assert met["dropped"] > met["connections"] / 2, met


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_million_frames_of_strangers(tmp_path):
    met = hold_out(tmp_path, MANY, 3000)
    assert sum(met[kind] for kind in KINDS) >= MANY, met
