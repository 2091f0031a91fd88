"""How every test runs."""

from __future__ import annotations

import os

from hypothesis import settings

# One set of generated kernels for a commit, so that whoever breaks a property is told of it, nobody else.
# Search on: HYPOTHESIS_PROFILE=search
settings.register_profile("same", derandomize=True, deadline=None)  # nothing is judged by time
settings.register_profile("search", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
