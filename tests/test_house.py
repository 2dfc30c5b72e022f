"""The house keeps its own rules, so that nobody has to remember them."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tokenize
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
SOURCE = PROJECT / "src" / "onfile"
MODULES = sorted(SOURCE.rglob("*.py"))
OURS = sorted(path for folder in ("src", "tests", "bench", "examples") for path in (PROJECT / folder).rglob("*.py"))
METADATA = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))

# Put together here, so that this file does not hold what it looks for.
REGISTRIES = [
    ".".join(host) for host in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("debian", "org"))
]
MACHINE_PATH = re.compile(r"(?:^|[^A-Za-z0-9_./-])/(?:tmp|work|root|farm|home)/", re.MULTILINE)
IGNORE = re.compile(r"#\s*(?:noqa|type:\s*ignore|pyright:|pragma:|ruff:|fmt:|isort:)")
IGNORE_WITH_REASON = re.compile(
    r"#\s*(?:noqa: [A-Z]+\d+(?:, ?[A-Z]+\d+)*|pyright: ignore\[[\w, ]+\]|pyright: \w+=\w+|pragma: no cover|fmt: \w+)"
    r"\s+#\s*\S"
)


def tracked() -> list[Path]:
    """The files that the repository keeps, or skip where that cannot be known: no git, or no clone."""
    git = shutil.which("git")
    if git is None or not (PROJECT / ".git").exists():
        pytest.skip("no git or no clone here, so what is tracked is not known")
    command = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=PROJECT, capture_output=True, check=True).stdout.decode().split("\0")
    return [path for name in names if name and (path := PROJECT / name).is_file()]


def run(code: str, *flags: str) -> str:
    """What a fresh Python prints."""
    done = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_onfile_needs_the_standard_library_and_nothing_else():
    # without site-packages, whatever was installed there cannot be imported
    run(f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r}); import onfile", "-I", "-S")


def test_importing_onfile_leaves_the_heavy_packages_alone():
    imported = set(run("import sys, onfile; print(*sys.modules)").split())

    assert imported.isdisjoint({"sqlalchemy", "pydantic", "fastapi", "numpy", "aiosqlite", "opentelemetry", "asyncio"})


def test_importing_onfile_takes_less_than_80_milliseconds():
    # Processor time: a machine that is busy with something else says nothing about the import.
    code = "from time import process_time as now; start = now(); import onfile; print(now() - start)"

    fastest = min(float(run(code)) for _ in range(5))

    assert fastest < 0.080


@pytest.mark.parametrize("module", sorted(SOURCE.glob("*.py")), ids=lambda module: module.stem)
def test_a_file_that_decides_imports_only_the_standard_library_and_its_siblings(module: Path):
    tree = ast.parse(module.read_text("utf-8"))

    named = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    named += [
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level and node.module
    ]
    outside = {name for name in named if name.partition(".")[0] not in {*sys.stdlib_module_names, "onfile"}}

    assert not outside


def test_a_missing_program_is_a_skip_on_a_person_s_machine_and_a_failure_in_ci(
    program: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-browser is not installed here"):
        program("no-such-browser")

    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-browser is missing"):
        program("no-such-browser")


def test_no_module_is_longer_than_400_lines():
    long = {
        str(path.relative_to(PROJECT)): lines
        for path in MODULES
        if (lines := len(path.read_text("utf-8").splitlines())) > 400
    }

    assert not long


def test_no_file_is_named_for_being_useful():
    names = {path.stem for path in [*MODULES, *(folder for folder in SOURCE.rglob("*") if folder.is_dir())]}

    assert names.isdisjoint({"utils", "util", "helpers", "helper", "common", "base", "core", "misc"})


def comments(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


@pytest.mark.parametrize(
    ("comment", "fine"),
    [
        ("# noqa: A002  # the record's own field name", True),
        ("# noqa: A002, S101  # the record's own field name", True),
        ("# pyright: ignore[reportPrivateUsage]  # the driver has no public door", True),
        ("# noqa: A002", False),
        ("# noqa", False),
        ("# noqa  # because", False),
        ("# pyright: ignore", False),
        ("# pyright: ignore[reportPrivateUsage]", False),
        ("# type: ignore[attr-defined]  # pyright is what reads us", False),
    ],
)
def test_a_reason_is_told_from_its_absence(comment: str, fine: bool):
    assert bool(IGNORE.match(comment)) and bool(IGNORE_WITH_REASON.match(comment)) is fine


def test_every_ignored_rule_says_why():
    bare = [
        f"{path.relative_to(PROJECT)}:{line}: {comment}"
        for path in OURS
        for line, comment in comments(path)
        if IGNORE.match(comment) and not IGNORE_WITH_REASON.match(comment)
    ]

    assert not bare


def test_no_file_names_a_machine_or_a_registry():
    told: list[str] = []
    for path in tracked():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        found = [host for host in REGISTRIES if host in text] + [match.group() for match in MACHINE_PATH.finditer(text)]
        told += [f"{path.relative_to(PROJECT)}: {what}" for what in found]

    assert not told


def test_the_base_installation_is_pydantic_sqlalchemy_and_aiosqlite():
    names = {re.split(r"[\s<>=!~;]", wanted)[0] for wanted in METADATA["project"]["dependencies"]}

    assert names == {"pydantic", "sqlalchemy[asyncio]", "aiosqlite"}


def test_every_dependency_has_a_lower_and_an_upper_bound():
    project, groups = METADATA["project"], METADATA["dependency-groups"]
    wanted = [*METADATA["build-system"]["requires"], *project["dependencies"]]
    wanted += [line for extra in project["optional-dependencies"].values() for line in extra]
    wanted += [line for group in groups.values() for line in group if isinstance(line, str)]

    unbounded = [line for line in wanted if not line.startswith("onfile[") and not (">=" in line and "<" in line)]

    assert not unbounded


def test_the_wheel_carries_every_file_of_the_package_and_says_that_it_is_typed(tmp_path: Path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)],
        cwd=PROJECT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    wheel = zipfile.ZipFile(next(tmp_path.glob("onfile-*.whl")))

    carried = {name for name in wheel.namelist() if name.startswith("onfile/")}
    kept = {path.relative_to(SOURCE.parent).as_posix() for path in tracked() if path.is_relative_to(SOURCE)}

    assert carried == kept
    assert "onfile/py.typed" in carried
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


def test_the_changelog_tells_of_the_version_that_is_built():
    headings = re.findall(r"^## (\S+)", (PROJECT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)

    assert METADATA["project"]["version"] in headings


def test_the_readme_lists_every_extra():
    listed = set(re.findall(r"^\| `([\w-]+)` \|", (PROJECT / "README.md").read_text("utf-8"), re.MULTILINE))

    assert listed == set(METADATA["project"]["optional-dependencies"])


def test_the_tests_and_the_checks_run_with_every_extra():
    installed = re.search(r"^EXTRAS := (\S+)$", (PROJECT / "Makefile").read_text("utf-8"), re.MULTILINE)

    assert installed
    assert set(installed[1].split(",")) == set(METADATA["project"]["optional-dependencies"])


def test_the_readme_starts_and_tests_the_project_with_one_command_each():
    readme = (PROJECT / "README.md").read_text("utf-8")
    targets = re.findall(r"^(\w+):.*## ", (PROJECT / "Makefile").read_text("utf-8"), re.MULTILINE)

    assert {"serve", "test"} <= set(targets)
    assert "make serve" in readme and "make test" in readme


def test_the_contributing_guide_has_a_line_for_every_module():
    glossary = set(re.findall(r"^\| `([\w]+)[/`]", (PROJECT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE))
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__"}
    modules |= {path.parent.name for path in SOURCE.glob("*/__init__.py")}

    assert modules <= glossary


def test_every_link_in_the_docs_leads_to_a_file():
    broken = [
        f"{page.relative_to(PROJECT)}: {target}"
        for page in tracked()
        if page.suffix == ".md"
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]

    assert not broken


def test_every_page_is_reached_from_the_documentation_s_index():
    index = PROJECT / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target in re.findall(r"\]\(([^)#\s]+)", index.read_text("utf-8"))}

    assert {page for page in index.parent.glob("*.md") if page != index} <= linked


def test_every_decision_is_in_the_list_under_its_number_and_title():
    folder = PROJECT / "docs" / "decisions"
    listed = re.findall(r"^(\d+)\. \[(.+)\]\((.+)\)$", (folder / "README.md").read_text("utf-8"), re.MULTILINE)

    titles = {path.name: path.read_text("utf-8").splitlines()[0] for path in folder.glob("0*.md")}

    assert {file: f"# {number}. {title}" for number, title, file in listed} == titles
    assert all(int(file[:4]) == int(number) for number, _, file in listed)


@pytest.mark.parametrize("target", ["serve", "test", "check", "bench"])
def test_what_make_would_run_from_nothing_is_whole(target: str):
    make, shell = shutil.which("make"), shutil.which("sh")
    if make is None or shell is None:
        pytest.skip("no make here")

    recipe = subprocess.run(
        [make, "--dry-run", "--always-make", target], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout

    subprocess.run([shell, "-n"], input=recipe, text=True, check=True)
    assert re.search(r"uv pip install [^\n]*'\.\[[\w,-]+\]'", recipe)
