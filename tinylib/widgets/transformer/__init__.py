from tinylib.widgets.transformer.ablation import AblationWidget
from tinylib.widgets.transformer.transformer import TransformerWidget

__all__ = ["AblationWidget", "TransformerWidget"]
