"""Whether a framework is installed: a visible skip on a person's machine, a failure in CI."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest


def needs(*packages: str) -> None:
    """Skip the module that calls this where a package is absent; in CI every framework was promised."""
    absent = [package for package in packages if find_spec(package) is None]
    if not absent:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{absent} missing, and .ci/run should have installed it", pytrace=False)
    pytest.skip(f"{', '.join(absent)} is not installed here", allow_module_level=True)
