"""The example is an application, not a package that is installed; its tests find it by its folder."""

import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/coding-agent"
sys.path.insert(0, str(EXAMPLE))
