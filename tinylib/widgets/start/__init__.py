from tinylib.widgets.start.start import StartWidget

__all__ = ["StartWidget"]
