"""The command `python -m tinylib.lab.train`."""

import sys

from tinylib.lab.train.registry import main

sys.exit(main())
