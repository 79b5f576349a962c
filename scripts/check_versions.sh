#!/usr/bin/env bash
# Runs the tests with the oldest Keras and TensorFlow that setup.py allows, in
# a virtual environment of its own; .ci/run takes the newest. Arguments go to
# pytest:
#
#     scripts/check_versions.sh
#     scripts/check_versions.sh -n 0 tests/test_layers.py
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ "${1:-}" == "--help" ]]; then
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit
fi

oldest() {
    sed -n "s/^ *\"$1>=\([0-9.]*\)\",$/$1==\1/p" setup.py
}

environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
python3 -m venv "$environment"
# shellcheck disable=SC1091
source "$environment/bin/activate"

export PIP_QUIET=1
pip install -e ".[test]" "$(oldest keras)" "$(oldest tensorflow)"
pip check
python -c 'import importlib.metadata as m
print("Keras", m.version("keras"), "TensorFlow", m.version("tensorflow"))'
pytest "$@"
