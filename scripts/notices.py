"""What cuda-lsp needs of others and under which licences: writes THIRD_PARTY.md, or says what it lacks.

    python scripts/notices.py             # rows of what is installed here are made anew, others stay
    python scripts/notices.py --missing   # names of what is needed here and not in the list

Python packages are not part of ours, they are installed beside it; what the VS Code extension is bundled with
is told, with its licence texts, in ``vscode-extension/THIRD_PARTY.md``, by the same run, where its packages
lie. Runs with nothing but Python, so that the tests ask in every environment that they install into.
"""

from __future__ import annotations

import argparse
import json
import re
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "THIRD_PARTY.md"
EXTENSION = ROOT / "vscode-extension"
HEAD = """# What cuda-lsp needs of others

Python packages that `pip install cuda-lsp` installs beside it, with the licences that they state. Which
of them are needed hangs on the version of Python. Nothing of theirs is copied into ours.
Made by `scripts/notices.py`.

| package | licence | needed by |
| --- | --- | --- |
"""
_ROW = re.compile(r"^\| (\S+) \| .*$", re.M)
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def normal(name: str) -> str:
    """A package's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(top: str = "cuda-lsp") -> dict[str, set[str]]:
    """What is installed of all that a package needs, and who needs it."""
    needed: dict[str, set[str]] = {}
    pending = [top]
    for who in pending:
        for line in metadata.requires(who) or ():
            name = _NAME.match(line)
            if name is None or "extra ==" in line:
                continue
            what = normal(name[0])
            try:
                metadata.distribution(what)
            except metadata.PackageNotFoundError:  # for another Python or another system
                continue
            if what not in needed:
                pending.append(what)
            needed.setdefault(what, set()).add(who)
    return needed


def licence(package: str) -> str:
    """As the package states it. Raises ValueError when it states none."""
    told = metadata.metadata(package)
    stated = told.get("License-Expression")
    classified = [
        line.rpartition(" :: ")[2] for line in told.get_all("Classifier", []) if line.startswith("License ::")
    ]
    words = (told.get("License") or "").strip()
    found = stated or ", ".join(classified) or (words if "\n" not in words else "")
    if not found:
        raise ValueError(f"{package} states no licence")
    return found


def rows() -> dict[str, str]:
    """Rows of the list by package: those of what is installed, and those that were there."""
    known = {match[1]: match[0] for match in _ROW.finditer(LIST.read_text() if LIST.exists() else "")}
    found = {
        name: f"| {name} | {licence(name)} | {', '.join(sorted(who))} |" for name, who in closure().items()
    }
    known.pop("package", None)
    known.pop("---", None)
    return dict(sorted({**known, **found}.items()))


def bundled() -> str | None:
    """The extension's page, as its lock file tells what is bundled; None: its packages do not lie here."""
    lock = json.loads((EXTENSION / "package-lock.json").read_text())["packages"]
    pending = ["vscode-languageclient"]
    parts = ["# What this extension is bundled with\n\nMade by `scripts/notices.py`.\n"]
    for name in pending:
        folder = EXTENSION / "node_modules" / name
        if not folder.is_dir():
            return None
        told = lock[f"node_modules/{name}"]
        pending += [other for other in told.get("dependencies", {}) if other not in pending]
        texts = sorted(path for path in folder.iterdir() if re.match(r"(?i)licen[cs]e", path.name))
        text = "\n".join(path.read_text(encoding="utf-8").strip() for path in texts)
        parts.append(f"## {name}\n\n{told['license']}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def main() -> None:
    """Write the lists, or print what they lack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--missing", action="store_true")
    if parser.parse_args().missing:
        listed = {match[1] for match in _ROW.finditer(LIST.read_text())}
        print(*sorted(closure().keys() - listed), sep="\n", end="")
        return
    LIST.write_text(HEAD + "\n".join(rows().values()) + "\n")
    if (page := bundled()) is not None:
        (EXTENSION / "THIRD_PARTY.md").write_text(page)


if __name__ == "__main__":
    main()
