"""What `pip install .` is told about the package."""

from __future__ import annotations

from importlib.metadata import Distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import build_backend


@pytest.fixture
def package(tmp_path: Path) -> Distribution:
    return Distribution.at(tmp_path / build_backend.prepare_metadata_for_build_wheel(str(tmp_path)))


@pytest.mark.parametrize(
    ("extra", "python", "wanted"),
    [
        ("", "3.14", set()),
        ("openhands", "3.12", {"openhands-sdk"}),
        ("ag-ui", "3.10", {"ag-ui-protocol", "fastapi"}),
        # takopi takes no older Python, where the extra brings nothing.
        ("takopi", "3.13", set()),
        ("takopi", "3.14", {"takopi"}),
    ],
)
def test_an_extra_brings_its_packages(
    package: Distribution, extra: str, python: str, wanted: set[str]
) -> None:
    where = {"extra": extra, "python_version": python}
    needed = [Requirement(it) for it in package.requires or []]
    assert {it.name for it in needed if it.marker and it.marker.evaluate(where)} == wanted
    assert all(it.marker for it in needed)


def test_takopi_finds_every_backend(package: Distribution) -> None:
    found = [it.value for it in package.entry_points if it.group == "takopi.engine_backends"]
    assert len(found) == 6
    assert {it.partition(":")[0] for it in found} == {"linkspan.takopi"}
