"""Any mixture of files in, findings out, in the order of what matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..errors import RoundelayError
from ..formats.note import Note
from ..i18n import message
from ..topology import Cluster
from . import Machine as Named
from .diagnosis import Diagnosis, Model
from .finding import names, of_file
from .given import Given
from .joint import joint_findings
from .recognise import kinds_of
from .speed.expected import Predict
from .taking import EXPECTED, taken

LISTED: Final = 8
"""Files that are named."""


def diagnose(
    files: Sequence[Given], cluster: Cluster | None, predict: Predict, machine: Named
) -> Diagnosis:
    """Read what there is, and say what is to be said.

    Args:
        files: any mixture.
        cluster: where tables were measured; without one, the cards that they name tell.
        predict: the model.
        machine: gives named machines.

    Raises:
        RoundelayError: no file can be read.
    """
    found, model = Diagnosis(), Model(cluster, predict, machine)
    strange: list[str] = []
    for given in files:
        try:
            kinds = kinds_of(given)
            if not kinds and len(files) == 1:
                raise RoundelayError(f"nothing known is in it; {EXPECTED}")
            strange += [] if kinds else [given.name]
            found.files.append((given.name, taken(found, given, kinds, model)))
        except (RoundelayError, OSError) as error:  # one that cannot be read hides no other
            why = str(error).removeprefix(f"{given.name}: ")
            if len(files) == 1:
                raise RoundelayError(f"{given.name}: {why}") from None
            found.files.append((given.name, ()))
            what = message("left out: {error}", error=why)
            found.notes.append((given.name, Note(0, what)))
    if found.files and not any(kinds for _, kinds in found.files):
        first = [f"{file}: {note.what}" for file, note in found.notes[:1]]
        why = first[0] if first else f"nothing known is in {names(strange, LISTED)}; {EXPECTED}"
        raise RoundelayError(f"none of {len(files)} files can be read. {why}")
    if strange:
        what = message("left out, as nothing known is in them: {files}",
                       files=names(strange, LISTED))  # fmt: skip
        found.notes.append(("", Note(0, what)))
    found.findings[:0] = joint_findings(found)
    if [kinds for _, kinds in found.files] == [("facts",)] and not found.findings and found.notes:
        file, note = found.notes[0]
        raise RoundelayError(f"{file}: {note.what.values.get('error', note.what)}")
    if len(files) > 1:
        found.findings = [of_file(finding) for finding in found.findings]
    found.sort()
    return found
