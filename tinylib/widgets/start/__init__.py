from tinylib.widgets.start.hero import HeroWidget
from tinylib.widgets.start.start import StartWidget

__all__ = ["HeroWidget", "StartWidget"]
