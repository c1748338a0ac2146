from tinylib.widgets.generation.beam_tree import BeamTreeWidget
from tinylib.widgets.generation.generation import GenerationWidget
from tinylib.widgets.generation.sampling import SamplingWidget

__all__ = ["BeamTreeWidget", "GenerationWidget", "SamplingWidget"]
