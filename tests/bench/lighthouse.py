"""Lighthouse's judgement of every page, on this machine: `make bench lighthouse`.

Each page is judged RUNS times with the mobile preset's own throttling and with that for desktops;
the table has the medians. The machine should be quiet: Lighthouse derives times from what it
observes. Lighthouse itself is fetched once, to _build/lighthouse, because it is larger than all
else that is taken from npm. After `PYTHONPATH=.:tests .venv/bin/python tests/bench/lighthouse.py`
the words `--runs 1 06_self_attention` choose pages and the number of runs.
"""

import argparse
import json
import os
import statistics
import subprocess
from typing import Any

from browsing import PAGES, ROOT, served
from chromium import find_chromium

LIGHTHOUSE = "lighthouse@12.8.2"
FOLDER = ROOT / "_build" / "lighthouse"
RUNS = 5
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
TIMES = {"first-contentful-paint": "FCP", "largest-contentful-paint": "LCP"} | {
    "total-blocking-time": "TBT",
}
CHROME = "--headless=new --no-sandbox --disable-gpu"


def program() -> str:
    """Lighthouse, fetched if it is not there; it needs no script run at its installation."""
    found = FOLDER / "node_modules" / ".bin" / "lighthouse"
    if not found.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run([*command, f"--prefix={FOLDER}", LIGHTHOUSE], check=True, cwd=FOLDER)
    return str(found)


def report_of(address: str, preset: str) -> dict[str, Any]:
    command = [program(), address, "--output=json", "--quiet", f"--chrome-flags={CHROME}"]
    command.append(f"--only-categories={','.join(CATEGORIES)}")
    if preset == "desktop":
        command.append("--preset=desktop")
    chosen = os.environ | {"CHROME_PATH": find_chromium(whole=True)}
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=chosen)
    report: dict[str, Any] = json.loads(run.stdout)
    return report


def row(reports: list[dict[str, Any]]) -> str:
    def middle(*path: str) -> float:
        found: list[Any] = list(reports)
        for key in path:
            found = [part[key] for part in found]
        return statistics.median(float(value or 0) for value in found)

    scores = [100 * middle("categories", name, "score") for name in CATEGORIES]
    times = [middle("audits", name, "numericValue") for name in TIMES]
    shift = middle("audits", "cumulative-layout-shift", "numericValue")
    return (
        "".join(f"{score:6.0f}" for score in scores)
        + "".join(f"{time:8.0f}" for time in times)
        + f"{shift:8.3f}"
    )


def failed(report: dict[str, Any]) -> list[str]:
    """The audits of the last three categories that are not passed: these do not depend on time."""
    names = [
        part["id"]
        for category in CATEGORIES[1:]
        for part in report["categories"][category]["auditRefs"]
        if part["weight"] and report["audits"][part["id"]]["score"] not in (1, None)
    ]
    return sorted(set(names))


def main() -> None:
    parser = argparse.ArgumentParser(description="Judge pages by Lighthouse.")
    parser.add_argument("pages", nargs="*", help="parts of their names (all)")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"for each median ({RUNS})")
    chosen = parser.parse_args()
    pages = [p for p in PAGES[1:] if not chosen.pages or any(one in p for one in chosen.pages)]
    heads = "".join(f"{name[:5]:>6}" for name in CATEGORIES) + "".join(
        f"{name:>8}" for name in (*TIMES.values(), "CLS")
    )
    print(f"{'':38}{heads}   (ms; median of {chosen.runs}; load {os.getloadavg()[0]:.1f})")
    with served() as site:
        for page in pages:
            for preset in ("mobile", "desktop"):
                reports = [report_of(f"{site}/{page}", preset) for _ in range(chosen.runs)]
                name = f"{page.removeprefix('chapters/').removesuffix('.html')} {preset}"
                faults = " ".join(failed(reports[0]))
                print(f"{name:38}{row(reports)}  {faults}", flush=True)


if __name__ == "__main__":
    main()
