"""What a placed job becomes for a scheduler: its ranks by host, and what they run."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from ..errors import RoundelayError
from ..units import format_time
from .plan import Placement
from .site import Site


@dataclass(frozen=True, eq=False)
class Submission:
    """A placed job with what a scheduler must be told beyond it.

    Attributes:
        placed: the job on cards of the site.
        site: whose hosts have names.
        program: a Python program and its arguments, as one types them.
        image: of containers.
        queue: the scheduler's queue, or partition; "" for its default.
    """

    placed: Placement
    site: Site
    program: str = "train.py"
    image: str = "registry.example/train:1"
    queue: str = ""

    def __post_init__(self) -> None:
        if self.queue and not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,62}", self.queue, re.A):
            raise RoundelayError(f"queue {self.queue!r:.80}; expected letters, digits, - and _, "
                                 "such as team-a")  # fmt: skip
        if not self.image or not self.image.isprintable() or " " in self.image:
            raise RoundelayError(f"image {self.image!r:.80}; expected such as registry.example/a:1")

    @cached_property
    def name(self) -> str:
        """The job's, in letters that Slurm and Kubernetes take: RFC 1123, at most 40."""
        plain = re.sub(r"[^a-z0-9]+", "-", self.placed.job.name.lower()).strip("-")
        return (plain if plain[:1].isalpha() else f"job-{plain}")[:40].rstrip("-")

    @cached_property
    def words(self) -> list[str]:
        """The program's words.

        Raises:
            RoundelayError: a quotation that isn't closed, no text, or none.
        """
        try:
            self.program.encode()
            words = shlex.split(self.program)
        except ValueError as error:
            raise RoundelayError(f"program {self.program!r:.80}: {error}") from None
        if not words:
            raise RoundelayError("no program; expected such as 'train.py --steps 100'")
        return words

    @cached_property
    def hosts(self) -> list[str]:
        """[rank] the host it runs on."""
        return [self.site.host(int(card)) for card in self.placed.cards]

    @cached_property
    def used(self) -> list[str]:
        """Hosts in the order of their first ranks."""
        return list(dict.fromkeys(self.hosts))

    @cached_property
    def each(self) -> int | None:
        """Ranks of every host, where all have as many, and each its ranks one after another."""
        runs = [len(list(run)) for _, run in groupby(self.hosts)]
        same = len(runs) == len(self.used) and len(set(runs)) == 1
        return runs[0] if same else None

    @property
    def others(self) -> str:
        """What a step would take where others place it."""
        against = self.placed.against.items()
        return ", ".join(f"{name.replace('_', ' ')}: {format_time(seconds)}"
                         for name, seconds in against if seconds is not None)  # fmt: skip

    @property
    def because(self) -> list[str]:
        """What was decided, and why, in a line each, whatever the names of exchanges."""
        return [" ".join(self.site.named(str(why)).split()) for why in self.placed.because]

    @property
    def whole(self) -> bool:
        """Whether its hosts are taken whole."""
        per_host = self.site.cluster.cards // self.site.cluster.hosts
        return self.each == per_host

    @property
    def cards(self) -> bool:
        """Whether ranks drive GPUs."""
        return self.site.cluster.generation != "cpu"
