"""The command `python -m tinylib.lab.speedrun`: run a submission, and enter it into the table."""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from tinylib.lab.data.corpora import tiny_shakespeare
from tinylib.lab.data.download import DataError
from tinylib.lab.speedrun import Refused, race
from tinylib.lab.train import weights
from tinylib.lab.train.files import sha256
from tinylib.lab.train.precision import processor


def main(arguments: Sequence[str] | None = None) -> str | int:
    """The command; what it returns is for `sys.exit`."""
    parser = argparse.ArgumentParser(
        prog="python -m tinylib.lab.speedrun", description="Run a submission of the speedrun."
    )
    parser.add_argument("file", nargs="?", help="the submission; without one, a record's")
    parser.add_argument("--record", metavar="NAME", help="enter it into the table by this name")
    options = parser.parse_args(arguments)
    path = Path(options.file or race.RECORDS / "todays_form.py")
    name = options.record or path.stem
    if not name.isidentifier():
        return f"'{name}' is no name for a record: take letters, digits and underscores."
    try:
        runs = race.race(path, tiny_shakespeare())
    except (Refused, DataError) as error:
        return f"Not accepted. {error}"
    log = {
        "file": f"{name}.py",
        "sha256": sha256(path),
        "threads": 1,
        "processor": processor(),
        "torch": torch.__version__,
        "runs": runs,
    }
    known = race.logs()
    for track in race.TRACKS:
        print(race.verdict(track, name, log, known))
    entered = {**known, name: log}
    if options.record and any(not race.misses(track, log) for track in race.TRACKS):
        if path.resolve() != (target := race.RECORDS / f"{name}.py").resolve():
            shutil.copy(path, target)
        weights.write_json(weights.FOLDER / "results" / f"{race.PREFIX}{name}.json", log)
        print(f"{target.name} and its log are in the folders of the records: commit both.")
    print(f"\n{race.table(entered)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
