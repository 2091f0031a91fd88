"""What of the solver's budget each kernel of a file has, where a file is analysed to its end.

In work, not in time, so that the verdicts of a file do not depend on what else the machine does.
"""

from __future__ import annotations

from cuda_lsp.static import budgets, work


class Shares:
    """The shares of one round: what is left of the file's, evenly among the kernels that are left."""

    def __init__(self, budget: int, kernels: int, again: bool) -> None:
        """``budget``: of one kernel, in milliseconds. ``again``: all of them had a share before."""
        self._budget, self._kernels, self._again = budget, kernels, again
        self._begun = work.done()

    def following(self, hopeless: bool = False) -> int | None:
        """Milliseconds for the next kernel; None: too little for a second look at it.

        ``hopeless``: another instance of its template took all that it had in this round, and stayed open.
        """
        whole = budgets.FILE_SHARES[self._again] * self._budget
        spent = 1000 * (work.done() - self._begun)
        fair = (whole - spent) / max(1, self._kernels)
        self._kernels -= 1
        if hopeless:
            return None if self._again else round(min(fair, budgets.HOPELESS_SHARE * self._budget))
        if self._again and fair < budgets.WORTHWHILE_SHARE * self._budget:
            return None
        least, late = budgets.LEAST_KERNEL_SHARES
        return round(min(self._budget, max(fair, (least if spent < 2 * whole else late) * self._budget)))
