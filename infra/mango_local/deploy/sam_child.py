"""Runs in the translator's own environment: `python sam_child.py read FILE`, or `translate` with a request on
standard input. Answers with JSON. Imports nothing of Mango."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def read(path: str) -> Any:
    from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-not-found]

    return yaml_parse(Path(path).read_text("utf-8"))


def translate(request: dict[str, Any]) -> Any:
    from samtranslator.translator.transform import transform  # type: ignore[import-not-found]

    class Policies:
        """Stands for IAM's list of managed policies, which is read from IAM otherwise."""

        def load(self) -> dict[str, str]:
            return dict(request["policies"])

    return transform(request["template"], request["parameters"], Policies())


if __name__ == "__main__":
    answer = read(sys.argv[2]) if sys.argv[1] == "read" else translate(json.load(sys.stdin))
    json.dump(answer, sys.stdout)
