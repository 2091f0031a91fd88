"""The first code of every Python process that cuda-lsp starts; never imported (see ``__init__.py``).

    python child.py MODULE-PATH MODULE [ARGUMENT …]

The package is loaded from where this file lies, so that both processes run the same code.
"""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from os import pathsep
from os.path import abspath, dirname, join

if __name__ == "__main__":
    _, searched, module, *arguments = sys.argv
    sys.path[:] = searched.split(pathsep)
    package = dirname(dirname(abspath(__file__)))
    spec = spec_from_file_location(
        "cuda_lsp", join(package, "__init__.py"), submodule_search_locations=[package]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["cuda_lsp"] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules["cuda_lsp"])
    from cuda_lsp.imports import importing

    with importing():
        room = import_module(module)
    room.main(*arguments)
