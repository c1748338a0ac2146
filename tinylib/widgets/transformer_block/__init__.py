from tinylib.widgets.transformer_block.block_stack import BlockStackWidget

__all__ = ["BlockStackWidget"]
