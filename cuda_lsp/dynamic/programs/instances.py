"""Which kernels a program's device code holds: each instance of each template, known beforehand or not.

The static side names kernels by their places and analyses some instances of a template. What a program
launches may be another one, or a kernel that the static side could not read: its code says where it stands,
and its mangled name what it is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from cuda_lsp.dynamic.compilation.compile import CompiledModule
from cuda_lsp.dynamic.job import is_wanted
from cuda_lsp.dynamic.programs.job import Counts, KernelRuns, ProgramKernel
from cuda_lsp.dynamic.ptx.module import PtxFunction
from cuda_lsp.dynamic.ptx.names import comparable, demangled, kernel_name, stable

Modules = Sequence[tuple[CompiledModule, CompiledModule]]

_NAMED = 3
LIBRARY = "it stands in no source of the program"
_NOT_WANTED = "another kernel was asked for"


@frozen
class Instances:
    """The entries of a program's modules. ``kernels``: those to check, each with a name of its own.

    ``homes``: the O0 and O3 build that hold an entry. ``refused``: why the others are not checked.
    """

    kernels: Mapping[str, ProgramKernel]
    homes: Mapping[str, tuple[CompiledModule, CompiledModule]]
    refused: Mapping[str, str] = field(factory=dict[str, str])

    def name_of(self, entry: str) -> str:
        """As findings name it."""
        kernel = self.kernels.get(entry)
        return kernel.kernel if kernel is not None else kernel_name(entry)


@frozen
class Tally:
    """The launches of each entry, as they come."""

    instances: Instances
    sampled: frozenset[int]  # which launches of a kernel are checked
    counts: dict[str, Counts] = field(factory=dict[str, Counts])

    def launched(self, entry: str) -> int:
        """One more launch; its number, from 1."""
        counts = self.counts.setdefault(entry, Counts())
        counts.launches += 1
        return counts.launches

    def refused(self, entry: str, reason: str) -> None:
        """The last launch is not checked."""
        reasons = self.counts[entry].reasons
        reasons[reason] = reasons.get(reason, 0) + 1

    def checked(self, entry: str) -> None:
        """The last launch was."""
        self.counts[entry].checked += 1

    def chosen(self, entry: str, reason: str | None = None) -> bool:
        """Whether the last launch is to be checked. ``reason``: why it cannot be."""
        if entry not in self.instances.kernels:
            reason = self.instances.refused.get(entry, LIBRARY)
        elif reason is None and self.counts[entry].launches not in self.sampled:
            reason = _sample(self.sampled)
        if reason is not None:
            self.refused(entry, reason)
        return reason is None

    def runs(self, checks: Mapping[str, KernelRuns]) -> tuple[KernelRuns, ...]:
        """What became of all launches; ``checks``: by entry, of those that were checked."""
        return tuple(
            checks.get(entry)
            or KernelRuns(self.instances.name_of(entry), self.instances.kernels.get(entry), counts)
            for entry, counts in self.counts.items()
        )


def _sample(numbers: frozenset[int]) -> str:
    *first, last = sorted(numbers)
    return f"only launches {', '.join(map(str, first))} and {last} of each kernel are"


def instances(
    modules: Modules, known: Sequence[ProgramKernel], wanted: Sequence[str] = (), unplaced: str = LIBRARY
) -> Instances:
    """All kernels of a program. ``wanted``: names of those to check; none: all.

    ``unplaced``: why those are not checked whose code stands nowhere.
    """
    kernels: dict[str, ProgramKernel] = {}
    homes: dict[str, tuple[CompiledModule, CompiledModule]] = {}
    refused: dict[str, str] = {}
    for pair in modules:
        for entry, kernel in _of_module(pair[0], known).items():
            if entry in homes:
                continue  # a template of a header, in several sources
            homes[entry] = pair
            if kernel is None:
                refused[entry] = unplaced
            elif not is_wanted(kernel.kernel, wanted):
                refused[entry] = _NOT_WANTED
            else:
                kernels[entry] = kernel
    return Instances(_told_apart(kernels), homes, refused)


def taken_for_one(modules: Modules) -> tuple[str, ...]:
    """Kernels and variables of one name that several sources define, each for itself, for people: host code
    tells us their names alone."""
    homes: Counter[str] = Counter()
    for plain, _ in modules:
        entries = [name for name, f in plain.module.entries.items() if f.linkage != "weak"]
        variables = [
            name
            for name, v in plain.module.variables.items()
            if v.space in ("global", "const") and v.linkage in ("", "visible") and not name.startswith("$")
        ]
        homes.update({*entries, *variables})
    found = sorted(kernel_name(name) for name, count in homes.items() if count > 1)
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    told = (
        f"{', '.join(found[:_NAMED])}{more}: several sources have their own, and only the first one's is used"
    )
    return (told,) if found else ()


def _of_module(compiled: CompiledModule, known: Sequence[ProgramKernel]) -> dict[str, ProgramKernel | None]:
    """Each entry and its kernel; None: it stands in no file of the user's."""
    found: dict[str, ProgramKernel | None] = {}
    others: dict[str, ProgramKernel] = {}
    for kernel in known:
        for entry in compiled.entries_of(kernel.range, kernel.base_name):
            if not kernel.mangled or comparable(entry) == comparable(stable(kernel.mangled)):
                found.setdefault(entry, kernel)
            else:
                others.setdefault(entry, kernel)
    for entry, function in compiled.module.entries.items():
        if entry not in found:
            kernel = others.get(entry)
            found[entry] = _stranger(compiled, entry) if kernel is None else _sibling(kernel, entry, function)
    return found


def _sibling(kernel: ProgramKernel, entry: str, function: PtxFunction) -> ProgramKernel:
    """Another instance of a template: what was proved or measured of the known one does not hold for it."""
    sizes = [parameter.size for parameter in function.params]
    fits = sizes == [parameter.size for parameter in kernel.parameters]
    return evolve(
        kernel,
        kernel=kernel_name(entry),
        mangled=entry,
        parameters=kernel.parameters if fits else (),
        shapes={},
        watch=True,
        analysed="",
    )


def _stranger(compiled: CompiledModule, entry: str) -> ProgramKernel | None:
    """A kernel that the static side does not know."""
    extent = compiled.extent_of(entry)
    if extent is None:
        return None
    name = kernel_name(entry)
    return ProgramKernel(name, name.split("<")[0], entry, extent, ())


def _told_apart(kernels: Mapping[str, ProgramKernel]) -> dict[str, ProgramKernel]:
    """Each with a name of its own: overloads get the types of their parameters, others their file's name."""
    said = dict(kernels)
    for more in (_with_parameters, _with_file, _with_entry):
        names = [kernel.kernel for kernel in said.values()]
        said = {
            entry: evolve(kernel, kernel=more(entry, kernel)) if names.count(kernel.kernel) > 1 else kernel
            for entry, kernel in said.items()
        }
    return said


def _with_parameters(entry: str, kernel: ProgramKernel) -> str:
    text, name = demangled(entry), kernel_name(entry)
    return name + text[text.find(name) + len(name) :] if name in text else kernel.kernel


def _with_file(entry: str, kernel: ProgramKernel) -> str:
    return f"{kernel.kernel} ({kernel.range.path.name})"


def _with_entry(entry: str, kernel: ProgramKernel) -> str:
    return f"{kernel.kernel} [{entry}]"
