"""The names of users are at the top of the package, and every error has one root."""

import importlib
import pkgutil
import subprocess
import sys
from types import ModuleType

import pytest

import lazulite_patterns
import lazulite_patterns.aio
from lazulite_patterns import PatternsError

MODULES = [
    importlib.import_module(each.name)
    for each in pkgutil.walk_packages(lazulite_patterns.__path__, "lazulite_patterns.")
    if not each.name.endswith("__main__")
]


@pytest.mark.parametrize("package", [lazulite_patterns, lazulite_patterns.aio])
def test_every_name_is_there_once(package: ModuleType) -> None:
    assert list(package.__all__) == sorted(set(package.__all__)) == sorted(package._PLACES)
    assert all(getattr(package, name).__name__ == name for name in package.__all__ if name != "Ticks")
    assert {name for name in package.__all__ if not hasattr(package, name)} == set()
    modules = {each.name for each in pkgutil.iter_modules(package.__path__)}
    assert modules & set(package.__all__) == set(), "a module that is imported would hide the name"
    with pytest.raises(AttributeError):
        _ = package.Tabel


def test_a_name_that_serves_both_is_not_in_aio() -> None:
    for name in sorted({*lazulite_patterns.__all__} - {*lazulite_patterns.aio.__all__}):
        with pytest.raises(ImportError, match=rf"^{name} .*: import it from lazulite_patterns$"):
            exec(f"from lazulite_patterns.aio import {name}")
    assert {*lazulite_patterns.aio.__all__} <= {*lazulite_patterns.__all__}


def test_a_name_has_one_meaning() -> None:
    """No two public classes that a program meets have one name, but for the asynchronous twins."""
    owners: dict[str, set[object]] = {}
    for module in MODULES:
        for name in getattr(module, "__all__", ()):
            if ".aio" not in module.__name__:
                owners.setdefault(name, set()).add(getattr(module, name))
    assert {name for name, found in owners.items() if len(found) > 1} == set()


def test_every_error_has_the_root() -> None:
    errors = {
        each
        for module in MODULES
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Exception) and each.__module__.startswith("lazulite_patterns.")
    }
    assert len(errors) > 25
    private = {each for each in errors if each.__name__.startswith("_")}
    assert {each.__name__ for each in errors - private if not issubclass(each, PatternsError)} == set()


def test_an_import_of_the_package_imports_little() -> None:
    program = "import sys, lazulite_patterns; print([each for each in sys.modules if each.startswith('azure')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
