from tinylib.widgets.inside_gpt.patching import PatchingWidget

__all__ = ["PatchingWidget"]
