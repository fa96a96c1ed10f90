"""The command `hemiola` as pip installs it. The extension module has it, and is loaded alone: the package around it takes longer to import than
most commands take."""

import importlib.machinery
import importlib.util
import sys


def main() -> None:
    package = importlib.util.find_spec("hemiola")
    spec = importlib.machinery.PathFinder.find_spec("_core", package.submodule_search_locations if package else None)
    if spec is None or spec.loader is None:
        sys.exit("error: the extension module of hemiola is missing\n  hint: pip install --force-reinstall hemiola")
    core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    sys.exit(core.command_line(sys.argv))
