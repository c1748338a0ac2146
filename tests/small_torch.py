"""Programs on the torch of the page, which run in a Python of their own: it has torch's name."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SMALL = ROOT / "site" / "small_torch"


def on_small_torch(program: str, given: Any) -> Any:
    """What a program writes, as JSON, of what it is given, on the small torch."""
    run = subprocess.run(
        [sys.executable, "-c", f"import json, sys\n{program}"],
        input=json.dumps(given),
        env=os.environ | {"PYTHONPATH": f"{SMALL}{os.pathsep}{ROOT}"},
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
