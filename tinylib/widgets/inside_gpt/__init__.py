from tinylib.widgets.inside_gpt.lens import LensWidget
from tinylib.widgets.inside_gpt.patching import PatchingWidget

__all__ = ["LensWidget", "PatchingWidget"]
