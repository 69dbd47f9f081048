"""Entry points of the Lambda functions."""

from __future__ import annotations

import gc

# A starting function makes a hundred thousand objects that stay. With Python's thresholds the collector would look at
# them again and again meanwhile, which takes a tenth of the start.
gc.set_threshold(50_000, 10, 10)
