"""What a run of a kernel on its own needs, as far as its text tells: what ``confirm`` asks of ``static``.

Sizes of buffers, what has to be in them, scalars, contents for a condition, and what need not be watched. All
of it but the last is a proposal: a run shows whether it fits.
"""

from cuda_lsp.static.launches.arguments import sample
from cuda_lsp.static.run_needs.contents import contents_for
from cuda_lsp.static.run_needs.elements import Elements, elements_of
from cuda_lsp.static.run_needs.lock_releases import lock_releases
from cuda_lsp.static.run_needs.proved_sites import proved_sites
from cuda_lsp.static.run_needs.shared_places import shared_places
from cuda_lsp.static.run_needs.sizes import buffer_bytes, spare_shared

__all__ = [
    "Elements", "buffer_bytes", "contents_for", "elements_of", "lock_releases", "proved_sites", "sample",
    "shared_places", "spare_shared",
]  # fmt: skip
