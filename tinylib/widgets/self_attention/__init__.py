from tinylib.widgets.self_attention.self_attention import SelfAttentionWidget

__all__ = ["SelfAttentionWidget"]
