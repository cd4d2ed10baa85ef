"""What a cluster's own definitions of custom kinds keep of a manifest.

A field that the definition of a kind lacks is dropped by the API server without a word (Kubernetes,
"Extend the Kubernetes API with CustomResourceDefinitions": field pruning). Values of a wrong type
or out of bounds it refuses by itself, so that they are not looked at here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ...errors import RoundelayError
from ...extras import need
from ...files import read_file
from .objects import at, listed
from .yaml import Manifest, documents, plain

LIMIT: Final = 2**26
"""Bytes of a file of definitions."""
ENDINGS: Final = (".json", ".yaml", ".yml")
BUILT_IN: Final = frozenset(["", "autoscaling", "batch", "scheduling.k8s.io"])
"""Groups of kinds that the API server has itself."""
SHOWN: Final = 5
"""Fields that an error names."""
_KEPT: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_OBJECT: Final = frozenset(["apiVersion", "kind", "metadata"])
"""Fields that a schema needn't have: the API server knows them."""


@dataclass(frozen=True)
class Definitions:
    """Custom kinds of a cluster.

    Attributes:
        kinds: schemas by the version that is served, by group and kind.
    """

    kinds: Mapping[tuple[str, str], Mapping[str, Mapping[str, Any]]]

    def check(self, value: Mapping[str, Any], file: str) -> None:
        """Refuse a document that the cluster doesn't know, or not whole.

        Raises:
            RoundelayError: with the file, and the kind, version or fields that are missing.
        """
        group, _, version = value["apiVersion"].rpartition("/")
        if group in BUILT_IN:
            return
        name = f"{file}: {value['kind']} of {group}"
        served = self.kinds.get((group, value["kind"]))
        if served is None:
            raise RoundelayError(f"{name}: the definitions have no such kind; expected those of a "
                                 "cluster where its controller is installed")  # fmt: skip
        if version not in served:
            raise RoundelayError(f"{name}/{version}: the cluster serves "
                                 f"{', '.join(served) or 'no version of it'}; expected {version}. "
                                 "The file says which release has it")  # fmt: skip
        lost = [*islice(_lost(value, served[version], "", whole=True), SHOWN)]
        if lost:
            raise RoundelayError(f"{name}/{version}: the cluster's definition lacks "
                                 f"{', '.join(lost)}, which its API server would drop without a "
                                 "word; expected the release that the file names")  # fmt: skip


def read_definitions(path: Path) -> Definitions:
    """The definitions of a file or folder: what ``kubectl get crd -o json`` prints, or -o yaml.

    Raises:
        RoundelayError: there is none; or YAML without PyYAML.
        OSError: it cannot be read.
    """
    paths = sorted(p for p in path.iterdir() if p.suffix in ENDINGS) if path.is_dir() else [path]
    kinds: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for file in paths:
        for document in _documents(read_file(file, LIMIT), file):
            for item in listed(document, "items") or [document]:
                if at(item, "kind") == "CustomResourceDefinition":
                    key = str(at(item, "spec", "group")), str(at(item, "spec", "names", "kind"))
                    kinds.setdefault(key, {}).update(_served(item))
    if not kinds:
        raise RoundelayError(f"{path}: no CustomResourceDefinition; expected the output of "
                             "`kubectl get crd -o json`, or a folder of such files")  # fmt: skip
    return Definitions(kinds)


def checked(found: Mapping[str, Manifest], known: Definitions | None) -> dict[str, str]:
    """Text by name of the file; where definitions are known, of manifests that they keep whole.

    Raises:
        RoundelayError: see `Definitions.check`.
    """
    if known is not None:
        for file, manifest in found.items():
            for value in manifest.values:
                known.check(plain(value), file)
    return {file: documents(*manifest) for file, manifest in found.items()}


def _documents(data: bytes, file: Path) -> Sequence[Any]:
    try:
        if data.lstrip()[:1] == b"{":
            return [json.loads(data)]
        need("yaml", "YAML is read with it (`kubectl get crd -o json` does without)", "yaml")
        yaml = import_module("yaml")
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return list(yaml.load_all(data, loader))
    except RoundelayError:
        raise
    except Exception as error:  # PyYAML raises nearly anything
        what = " ".join(str(error).split())[:200]
        raise RoundelayError(f"{file}: neither JSON nor YAML: {what}") from None


def _served(definition: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schema of each version that is served."""
    for version in listed(definition, "spec", "versions"):
        if at(version, "served") is True:
            schema = at(version, "schema", "openAPIV3Schema")
            legacy = at(definition, "spec", "preserveUnknownFields") is True
            kept = {_KEPT: True} if legacy or not isinstance(schema, dict) else schema
            yield str(at(version, "name")), kept


def _lost(value: Any, schema: Mapping[str, Any], path: str, *, whole: bool = False,
          kept: bool = False) -> Iterator[str]:  # fmt: skip
    """Paths of fields that the schema has no place for.

    Args:
        value: the document, or a part of it.
        schema: of it.
        path: to it.
        whole: whether it is an object of its own.
        kept: whether the schema around keeps what it doesn't know. A schema that has properties
            decides for itself.
    """
    if isinstance(value, list):
        inner = at(schema, "items") or {}
        for i, one in enumerate(value):
            yield from _lost(one, inner, f"{path}[{i}]", kept=kept)
    if not isinstance(value, Mapping):
        return
    fields, more = at(schema, "properties"), at(schema, "additionalProperties")
    kept = at(schema, _KEPT) is True or (kept and not fields and not more)
    known = _OBJECT if whole or at(schema, _EMBEDDED) is True else frozenset()
    for key, one in value.items():
        where = f"{path}.{key}".lstrip(".")
        if key in known:
            continue
        inner = at(fields, key)
        inner = more if inner is None else inner
        if isinstance(inner, Mapping):
            yield from _lost(one, inner, where, kept=kept)
        elif not kept and more is not True:
            yield where
