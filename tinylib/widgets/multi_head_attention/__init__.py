from tinylib.widgets.multi_head_attention.head_cost import HeadCostWidget
from tinylib.widgets.multi_head_attention.heads import HeadsWidget
from tinylib.widgets.multi_head_attention.heads_trainer import HeadsTrainer
from tinylib.widgets.multi_head_attention.multi_head_attention import MultiHeadAttentionWidget

__all__ = ["HeadCostWidget", "HeadsTrainer", "HeadsWidget", "MultiHeadAttentionWidget"]
