"""What pyproject.toml cannot say: away from GitHub, the links in the README have to be absolute."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

here = Path(__file__).parent
project = tomllib.loads((here / "pyproject.toml").read_text(encoding="utf-8"))["project"]
site = project["urls"]["Repository"]
readme = (here / "README.md").read_text(encoding="utf-8")
readme = re.sub(r"(!\[[^]]*\]\()(?![a-z]+:|#)", rf"\1{site}/raw/main/", readme)
readme = re.sub(r"(\]\()(?![a-z]+:|#)", rf"\1{site}/blob/main/", readme)
setup(long_description=readme, long_description_content_type="text/markdown")
