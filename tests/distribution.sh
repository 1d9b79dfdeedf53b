#!/usr/bin/env bash
# The wheel as a stranger meets it: built, installed into an empty environment without extras and far
# from this repository, and used. `make package` runs it; it takes minutes, most of them installing.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
"$python" -m build --version > /dev/null 2>&1 || "$python" -m pip install -q --disable-pip-version-check build

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m build --outdir "$work/dist" .
wheel=$(echo "$work"/dist/*.whl)
sdist=$(echo "$work"/dist/*.tar.gz)
du -h "$wheel" "$sdist" | sed "s|$work/||"

# The wheel holds its types and its data; the source holds what builds the wheel, and no more.
"$python" -m zipfile -l "$wheel" > "$work/in-wheel"
grep -q '^understudy/py\.typed ' "$work/in-wheel"
grep -q '^understudy/demos/data/Hopper-v5\.npz ' "$work/in-wheel"
grep -q 'licenses/LICENSE ' "$work/in-wheel"
tar -tzf "$sdist" | cut -d/ -f2- > "$work/in-sdist"
grep -q '^src/understudy/py\.typed$' "$work/in-sdist"
if grep -E '^(results|runs|site|sweeps|docs|tests|benchmarks)/' "$work/in-sdist"; then
  echo "The source distribution holds what it should not."
  exit 1
fi

"$python" -m venv "$work/empty"
"$work/empty/bin/pip" install -q --no-compile --disable-pip-version-check "$wheel"
mkdir "$work/elsewhere"
cd "$work/elsewhere"
PATH=$work/empty/bin:$PATH
understudy --help > /dev/null
understudy train EmptyRoom-3x3 --interactions 200
python - <<'PYTHON'
from importlib.resources import files

from understudy.demos import shipped

assert "site-packages" in str(files("understudy")), files("understudy")
assert files("understudy").joinpath("py.typed").is_file()
assert len(shipped.find("Hopper-v5")) == 10
print("ten demonstrations of Hopper-v5, and the types, are in the wheel")
PYTHON
