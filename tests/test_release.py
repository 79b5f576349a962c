"""Tests of what a wheel holds, and of who has nothing but the wheel."""

import email
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import gnr_keras

ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    # Of a copy: building leaves files beside what it builds.
    source = folder / "source"
    source.mkdir()
    for name in ("gin", "gnr_keras"):
        shutil.copytree(ROOT / name, source / name)
    for name in ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, source)
    shutil.copy(ROOT / "setup.py", source)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", folder, source]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_all_code_and_data(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "gnr_keras").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    expected |= {
        f"gnr_keras/gin_files/{path.relative_to(ROOT / 'gin')}"
        for path in (ROOT / "gin").rglob("*.gin")
    }
    found = {name for name in held if ".dist-info/" not in name}
    assert found == expected
    assert any(name.endswith("/LICENSE") for name in held)


def test_the_version_stands_in_one_place(wheel):
    assert f"-{gnr_keras.__version__}-" in wheel.name
    citation = (ROOT / "CITATION.cff").read_text()
    cited = re.search(r"^version: (.+)$", citation, re.MULTILINE)[1]
    assert cited == gnr_keras.__version__


def test_the_metadata_names_licence_and_needs(wheel):
    with zipfile.ZipFile(wheel) as file:
        name = next(n for n in file.namelist() if n.endswith("/METADATA"))
        metadata = email.message_from_bytes(file.read(name))
    licences = [metadata["License"], metadata["License-Expression"]]
    assert "Apache-2.0" in licences
    needs = " ".join(metadata.get_all("Requires-Dist"))
    for package in ("tensorflow", "keras", "gin-config", "matplotlib"):
        assert package in needs


def run_alone(wheel, folder, *arguments):
    """Calls Python with the unpacked wheel, far from the checkout."""
    place = folder / "unpacked"
    if not place.exists():
        zipfile.ZipFile(wheel).extractall(place)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
    )


def test_gin_files_are_found_without_a_checkout(wheel, tmp_path):
    """By both names, with all that they include; and gin stays gin-config."""
    code = """
import gin
import gnr_keras
from gnr_keras import gin_bindings, gin_folder
for name in ("quickstart.gin", "gin/core50_nc.gin"):
    gin_bindings.configure([name], gin_dir=gin_folder.find())
print(gnr_keras.__file__, gin_folder.find(), gin.__file__, sep="\\n")
"""
    result = run_alone(wheel, tmp_path, "-c", code)
    assert result.returncode == 0, result.stderr[-3000:]
    package, found, gin_config = result.stdout.splitlines()
    place = tmp_path / "unpacked" / "gnr_keras"
    assert package == str(place / "__init__.py")
    assert found == str(place / "gin_files")
    assert not gin_config.startswith((str(tmp_path), str(ROOT)))


def test_the_trainer_is_a_module_of_the_wheel(wheel, tmp_path):
    result = run_alone(
        wheel, tmp_path, "-m", "gnr_keras", "--gin_file=quickstrat.gin"
    )
    assert result.returncode == 1
    assert "Did you mean 'quickstart.gin'?" in result.stderr
    assert "Traceback" not in result.stderr
