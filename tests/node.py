"""JavaScript that needs no page is run in Node, which starts in a tenth of a second."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "tinylib" / "live" / "page"  # scripts that need no page


def find_node() -> str:
    """Node of this machine, or the one that `make` has put into the environment."""
    path = os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ.get("PATH", "")])
    if found := shutil.which("node", path=path):
        return found
    raise LookupError("Node was not found: `make site` sets it up")


def in_node(module: Path, rule: str, given: Any, cases: list[Any], before: str = "") -> list[Any]:
    """What ``rule`` makes of each case; ``before`` runs before the module is loaded.

    It is the source of a function (module, [given, case], node) => result in JavaScript; ``node``
    holds Node's own modules ``fs`` and ``crypto``.
    """
    script = f"""
        import * as fs from "node:fs";
        import * as crypto from "node:crypto";
        {before}
        const module = await import({json.dumps(module.resolve().as_uri())});
        const rule = {rule};
        const [given, cases] = JSON.parse(fs.readFileSync(0, "utf8"));
        const results = cases.map((one) => rule(module, [given, one], {{ fs, crypto }}) ?? null);
        process.stdout.write(JSON.stringify(results));
    """
    run = subprocess.run(
        [find_node(), "--no-warnings", "--input-type=module", "--eval", script],
        input=json.dumps([given, cases]),
        capture_output=True,
        encoding="utf-8",
    )
    assert run.returncode == 0, run.stderr
    results: list[Any] = json.loads(run.stdout)
    assert len(results) == len(cases)
    return results


class Engine:
    """The page's engine in Node: the files of the built site, and the same build of its runtime.

    It starts once, and then runs each widget's graphs and program as a page does.
    """

    def __init__(self, live: Path) -> None:
        self.node = subprocess.Popen(
            [find_node(), str(Path(__file__).with_name("engine.mjs")), f"{live}{os.sep}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def __call__(self, view: str, rule: str, given: Any) -> Any:
        """What ``rule``, (module, given, run, start) => result, makes of the view's module."""
        assert self.node.stdin and self.node.stdout
        print(json.dumps([view, rule, given]), file=self.node.stdin, flush=True)
        answer = self.node.stdout.readline()
        assert answer, "Node has ended: what it said stands among the captured output"
        return json.loads(answer)

    def close(self) -> None:
        self.node.communicate()
