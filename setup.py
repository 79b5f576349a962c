import pathlib

from setuptools import find_packages
from setuptools import setup

here = pathlib.Path(__file__).parent

setup(
    name="gnr_keras",
    version="0.1.0",
    description="Generative negative replay and continual learning for Keras",
    long_description=(here / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    packages=find_packages(include=["gnr_keras", "gnr_keras.*"]),
    package_data={
        "gnr_keras": ["weights/*.weights.h5"],
        "gnr_keras.html_report": ["template/*"],
    },
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
        "test": [
            "ai-edge-litert",
            "ai-edge-quantizer",
            "hypothesis",
            "pytest",
            "pytest-xdist",
            "ruff",
        ],
    },
)
