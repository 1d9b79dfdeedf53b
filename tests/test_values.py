"""What is handed about is a value: nobody who is given one can change it under another's hands."""

import dataclasses
import importlib
import pkgutil

import equinox
import pytest

PACKAGES = ("core", "theory", "envs", "demos", "learners", "experiments")
# Those that are there to change: how far a run is, an environment under way, a process.
CHANGING = {"Folder", "Lane", "Place", "Reached", "Worker"}


def modules(package):
    found = importlib.import_module(f"understudy.{package}")
    for module in pkgutil.walk_packages(found.__path__, found.__name__ + "."):
        if module.name != "understudy.envs.registered":  # which registers, when it is imported
            yield importlib.import_module(module.name)


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_that_is_handed_about_can_be_assigned_to(package):
    found = {
        value
        for module in modules(package)
        for value in vars(module).values()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and dataclasses.is_dataclass(value)
        and not issubclass(value, equinox.Module)  # which never can
    }
    changing = {of.__name__ for of in found if not of.__dataclass_params__.frozen}
    assert changing <= CHANGING
