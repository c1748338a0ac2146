from tinylib.widgets.start.hero import HeroWidget

__all__ = ["HeroWidget"]
