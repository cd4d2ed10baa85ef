"""Ready-made steps of a transformer: data parallel, fully sharded, tensor parallel.

A layer has 12 h^2 parameters, and takes 24 B s h^2 + 4 B s^2 h operations forwards and twice that
backwards, for B sequences of s tokens and a hidden size h (Narayanan et al., arXiv 2104.04473,
section 3.4 and appendix). Embeddings, norms and the optimizer are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...errors import RoundelayError
from .cards import Card
from .tasks import COMM, COMPUTE, Exchange, Group, Step, Task

LIMITS: Final = {
    "layers": 10_000,
    "hidden": 2**20,
    "sequence": 2**24,
    "batch": 2**20,
    "itemsize": 8,
}
"""The greatest values of a model's fields."""


@dataclass(frozen=True)
class Model:
    """A transformer, and what a card works at in a step.

    Attributes:
        layers: how many.
        hidden: size of a token's activation.
        sequence: tokens of a sequence.
        batch: sequences of a card, or of the cards of a tensor-parallel group together.
        itemsize: bytes of a parameter, gradient or activation.
    """

    layers: int
    hidden: int
    sequence: int
    batch: int = 1
    itemsize: int = 2

    def __post_init__(self) -> None:
        for name, most in LIMITS.items():
            value = getattr(self, name)
            if not isinstance(value, int) or not 1 <= value <= most:
                raise RoundelayError(f"model: {name} = {value!r}; expected 1 to {most:,}")

    @property
    def layer_bytes(self) -> int:
        """Bytes of a layer's parameters, or gradients."""
        return 12 * self.hidden**2 * self.itemsize

    @property
    def activation_bytes(self) -> int:
        """Bytes of the activations between layers."""
        return self.batch * self.sequence * self.hidden * self.itemsize

    @property
    def attention(self) -> int:
        """Operations of a layer's attention, forwards."""
        b, s, h = self.batch, self.sequence, self.hidden
        return 8 * b * s * h**2 + 4 * b * s**2 * h

    @property
    def mlp(self) -> int:
        """Operations of a layer's multilayer perceptron, forwards."""
        return 16 * self.batch * self.sequence * self.hidden**2

    @property
    def operations(self) -> int:
        """Operations of a step, forwards and backwards."""
        return 3 * self.layers * (self.attention + self.mlp)


def data_parallel(
    model: Model, card: Card, bucket: int = 25 << 20, group: Group | None = None
) -> Step:
    """Every rank has all parameters; gradients are added up while the backward pass goes on.

    A rank sends 2 (d - 1) / d of its gradients' bytes.

    Args:
        model: the whole of it on each card.
        card: what it computes.
        bucket: gradients are exchanged as soon as there are so many bytes, or at the end. By
            default 25 MiB, as in torch's DistributedDataParallel (bucket_cap_mb); whole layers.
        group: who shares the batch; None: all ranks.

    Raises:
        RoundelayError: a bucket of less than a byte.
    """
    if bucket < 1:
        raise RoundelayError(f"bucket = {bucket}; expected bytes, 1 or more")
    forward = card.seconds(model.attention + model.mlp)
    tasks = [Task(f"forward {i}", COMPUTE, forward) for i in range(model.layers)]
    full = 0
    for i in reversed(range(model.layers)):
        tasks.append(Task(f"backward {i}", COMPUTE, 2 * forward))
        full += model.layer_bytes
        if full >= bucket or i == 0:
            work = Exchange("all_reduce", full, group)
            tasks.append(Task(f"gradients {i}", COMM, work, (f"backward {i}",)))
            full = 0
    return Step(tasks)


def fsdp(
    model: Model,
    card: Card,
    prefetch: int = 1,
    group: Group | None = None,
    *,
    reshard: bool = True,
) -> Step:
    """Parameters, gradients and optimizer states are sharded; a layer is gathered when it is due.

    A rank sends 3 (d - 1) / d of the parameters' bytes, 2 where layers stay gathered after the
    forward pass. Gathering and scattering go one after the other, on one stream.

    Args:
        model: the whole of it.
        card: what it computes.
        prefetch: layers that are gathered ahead of the one that is computed.
        group: over whom it is sharded; None: all ranks.
        reshard: whether layers are gathered anew for the backward pass.

    Raises:
        RoundelayError: a negative prefetch.
    """
    if prefetch < 0:
        raise RoundelayError(f"prefetch = {prefetch}; expected 0 or more layers")
    gather = Exchange("all_gather", model.layer_bytes, group)
    scatter = Exchange("reduce_scatter", model.layer_bytes, group)
    seconds = card.seconds(model.attention + model.mlp)
    names = [f"forward {i}" for i in range(model.layers)]
    names += [f"backward {i}" for i in reversed(range(model.layers))]
    gathered = names if reshard else names[: model.layers]
    tasks: list[Task] = []
    for k, name in enumerate(names):
        # There is room for a layer where the one before those that are gathered is done with.
        for j in range(k + prefetch if k else 0, min(k + prefetch + 1, len(gathered))):
            after = (names[j - prefetch - 1],) if j > prefetch else ()
            tasks.append(Task(f"gather for {names[j]}", COMM, gather, after))
        backward = k >= model.layers
        after = (f"gather for {name}",) if k < len(gathered) else ()
        tasks.append(Task(name, COMPUTE, seconds * (1 + backward), after))
        if backward:
            tasks.append(Task(f"scatter of {name}", COMM, scatter, (name,)))
    return Step(tasks)


def tensor_parallel(model: Model, card: Card, cards: int) -> Step:
    """Every layer is cut over the cards of a group, which add up its activations.

    Nothing is computed meanwhile. A rank sends 8 B s h (t - 1) / t elements a layer: two
    all-reduces forwards, two backwards.

    Args:
        model: `batch` is that of a group.
        card: what it computes.
        cards: of a group, one beside the other.

    Raises:
        RoundelayError: no such group.
    """
    add = Exchange("all_reduce", model.activation_bytes, Group(cards))
    halves = (("attention", model.attention), ("mlp", model.mlp))
    tasks: list[Task] = []

    def then(name: str, operations: float) -> None:
        after = (tasks[-1].name,) if tasks else ()
        tasks.append(Task(name, COMPUTE, card.seconds(operations / cards), after))
        tasks.append(Task(f"add {name}", COMM, add, (name,)))

    for i in range(model.layers):
        for half, operations in halves:
            then(f"forward {i} {half}", operations)
    for i in reversed(range(model.layers)):
        for half, operations in reversed(halves):
            then(f"backward {i} {half}", 2 * operations)
    return Step(tasks)
