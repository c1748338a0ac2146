from tinylib.widgets.inside_gpt.lens import LensWidget

__all__ = ["LensWidget"]
