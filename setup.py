import pathlib
import re

from setuptools import find_packages
from setuptools import setup

here = pathlib.Path(__file__).parent
package = (here / "gnr_keras" / "__init__.py").read_text(encoding="utf-8")

setup(
    name="gnr_keras",
    # Read and not imported, which would need TensorFlow.
    version=re.search(r'^__version__ = "(.+)"$', package, re.MULTILINE)[1],
    description="Generative negative replay and continual learning for Keras",
    long_description=(here / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    # As in CITATION.cff.
    author="The gnr_keras authors",
    project_urls={"Paper": "https://doi.org/10.1016/j.neunet.2023.03.006"},
    license="Apache-2.0",
    license_files=["LICENSE"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.11",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    packages=[
        *find_packages(include=["gnr_keras", "gnr_keras.*"]),
        "gnr_keras.gin_files",
    ],
    # Installed as `gin`, the folder would take the place of gin-config.
    package_dir={"gnr_keras.gin_files": "gin"},
    package_data={
        "gnr_keras": ["py.typed", "weights/*.weights.h5"],
        "gnr_keras.gin_files": ["**/*.gin"],
        "gnr_keras.html_report": ["template/*"],
    },
    # MANIFEST.in is of the source distribution alone.
    include_package_data=False,
    python_requires=">=3.11",
    install_requires=[
        "absl-py",
        "gin-config>=0.5",
        # TensorFlow Datasets imports it, and does not ask for it.
        "importlib_resources",
        "keras>=3.14",
        # Draws accuracy.png, which every run of scripts/train.py writes.
        "matplotlib",
        "numpy",
        "tensorflow>=2.20",
        "tensorflow-datasets",
    ],
    extras_require={
        # `scripts/export.py --format=litert`, and what runs its files.
        "litert": ["ai-edge-litert", "ai-edge-quantizer"],
        "tensorboard": ["tensorboard"],
        "test": [
            "ai-edge-litert",
            "ai-edge-quantizer",
            "build",
            "hypothesis",
            "mypy",
            "pytest",
            "pytest-xdist>=3.8",
            "ruff",
            "setuptools>=62.3",
            "tensorboard",
            "wheel",
        ],
    },
)
