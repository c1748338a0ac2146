"""Load nbval, the plugin of pytest that runs chapters, without a part that takes long to import.

nbval imports jsonschema, which imports rfc3987_syntax if it is there, and that compiles the grammar
of internationalised addresses for four seconds in each process. No notebook has such an address to
be validated. As nbval would load before any file of ours, pyproject.toml turns that off.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
pytest_plugins = ["nbval.plugin", "kernels"]
