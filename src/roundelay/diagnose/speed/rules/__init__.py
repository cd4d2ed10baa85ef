"""The rules, one function each: each looks for one thing, by figures alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...finding import Finding
from ..case import Case, Rule
from .beside_model import far_below, launch_floor, ring_rate, slower
from .changes import changed, falls_with_cards, grows_with_cards
from .curves import choice_by_size, dips, erratic, times_stay
from .experts import beside_published, own_node_counted, waiting_counted
from .layouts import (
    bond_uneven,
    by_layout,
    call_waits,
    collectives_apart,
    protocols,
    with_and_without,
)
from .network import all_to_all, fixed_step, slow_nodes, version_regression
from .rates import (
    average,
    bits_for_bytes,
    both_directions,
    line_figure,
    link_usable,
    not_flat,
    slow_port,
)
from .said import access_control, below_wire, fewer_cards, over_sockets, runs_differ, small_size
from .settings import channels, few_rails, setting_costs
from .share import share_of_line
from .slots import copies, over_pcie, slot_bounds
from .sockets import bond, count_of_32_bits, interface_matters
from .switches import adds_in_switch, rings_between, tree_on_two_nodes
from .tables import falls_with_size, forms_differ, one_rank, same_size_again, wrong_results

RULES: Final[tuple[Rule, ...]] = (
    wrong_results,
    one_rank,
    falls_with_size,
    far_below,
    dips,
    times_stay,
    erratic,
    forms_differ,
    same_size_again,
    setting_costs,
    channels,
    few_rails,
    access_control,
    over_sockets,
    bond_uneven,
    below_wire,
    by_layout,
    call_waits,
    runs_differ,
    slow_nodes,
    version_regression,
    changed,
    falls_with_cards,
    grows_with_cards,
    interface_matters,
    count_of_32_bits,
    bond,
    fixed_step,
    all_to_all,
    slower,
    over_pcie,
    copies,
    slot_bounds,
    small_size,
    fewer_cards,
    slow_port,
    bits_for_bytes,
    both_directions,
    own_node_counted,
    beside_published,
    waiting_counted,
    collectives_apart,
    with_and_without,
    protocols,
    tree_on_two_nodes,
    rings_between,
    adds_in_switch,
    ring_rate,
    link_usable,
    line_figure,
    choice_by_size,
    not_flat,
    launch_floor,
    average,
)
"""What weighs more comes first."""


def findings(case: Case) -> Sequence[Finding]:
    """All that the rules find: faults first, then by the rules' order."""
    every = [finding for rule in RULES if (finding := rule(case)) is not None]
    if not every and (last := share_of_line(case)) is not None:
        every = [last]
    return sorted(every, key=lambda finding: not finding.fault)
