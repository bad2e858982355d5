"""What is published: the version, the public names, the changelog, the licence."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import unskew

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_version_is_one() -> None:
    """The package and its metadata have the same version."""
    assert unskew.__version__ == PROJECT["version"]


def test_changelog_knows_the_version() -> None:
    """The changelog has a section for the present version."""
    assert f"## [{unskew.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", unskew.__all__)
def test_public_name_resolves(name: str) -> None:
    """Every public name leads to something."""
    assert getattr(unskew, name) is not None


def test_public_names_are_listed() -> None:
    """``dir`` shows the public names, and an unknown one is an ordinary AttributeError."""
    assert set(unskew.__all__) <= set(dir(unskew))
    with pytest.raises(AttributeError, match="no attribute 'rea_log'"):
        _ = unskew.rea_log


def test_star_import_gives_every_public_name() -> None:
    """``from unskew import *`` works."""
    namespace: dict[str, object] = {}
    exec("from unskew import *", namespace)  # noqa: S102
    assert set(unskew.__all__) <= set(namespace)


@pytest.mark.parametrize("room", ["", ".bias", ".clicks", ".engines", ".online", ".simulate"])
def test_names_for_type_checkers_are_public(room: str) -> None:
    """Whatever a lazy package imports for type checkers is a public name of it that leads there."""
    package = import_module(f"unskew{room}")
    tree = ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert len(imports) == len(block.body) > 2
    for node in imports:
        for one in node.names:
            assert one.name in package.__all__
            home = import_module(str(node.module))
            assert getattr(package, one.name) is getattr(home, one.name)


def test_licence_is_whole() -> None:
    """The licence file that the metadata names is the Apache License from its head to its end."""
    assert PROJECT["license"] == "Apache-2.0"
    text = (ROOT / PROJECT["license-files"][0]).read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_module_runs_as_a_program() -> None:
    """The command line starts and shows the version of the package."""
    program = "from unskew.cli import main; main(['--version'])"
    shown = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    assert shown.strip() == f"unskew {unskew.__version__}"


def test_citation_has_the_version_and_the_paper() -> None:
    """CITATION.cff names the present version, the licence, and the paper of the method."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {unskew.__version__}\n" in text
    assert f"\nlicense: {PROJECT['license']}\n" in text
    assert "Unbiased LambdaMART: An Unbiased Pairwise Learning-to-Rank Algorithm" in text


def test_the_source_package_is_whole() -> None:
    """What the tests and the docs need is in the source package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {"src", "tests", "docs", "benchmarks", "CITATION.cff", "conftest.py"} <= set(included)
    assert not [name for name in included if not (ROOT / name).exists()]


def test_the_base_install_does_not_grow() -> None:
    """Without an extra, these packages are installed; whatever is added belongs into an extra."""
    names = {re.split(r"[^a-z-]", requirement)[0] for requirement in PROJECT["dependencies"]}
    assert names == {
        "duckdb", "lightgbm", "numba", "numpy", "pyarrow", "rich", "scikit-learn", "scipy",
        "threadpoolctl", "typer",
    }  # fmt: skip


def test_every_extra_is_tried_before_a_release() -> None:
    """The script that installs each extra alone has a use for each of them."""
    sys.path.insert(0, str(ROOT / "tests"))
    import installs

    assert set(installs.USES) == {"base", *PROJECT["optional-dependencies"]}


def test_extras_are_independent() -> None:
    """An extra names packages with lower bounds, or other extras that are there."""
    extras = PROJECT["optional-dependencies"]
    for requirement in (one for listed in extras.values() for one in listed):
        inner = re.fullmatch(r"unskew\[(.*)\]", requirement)
        if inner is None:
            assert ">=" in requirement, requirement
        else:
            assert set(inner.group(1).split(",")) <= set(extras)
