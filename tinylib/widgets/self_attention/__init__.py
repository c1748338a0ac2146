from tinylib.widgets.self_attention.colour_trainer import ColourTrainer
from tinylib.widgets.self_attention.self_attention import SelfAttentionWidget

__all__ = ["ColourTrainer", "SelfAttentionWidget"]
