from tinylib.widgets.positional_encoding.positional_encoding import PositionalEncodingWidget
from tinylib.widgets.positional_encoding.word_order import WordOrderWidget

__all__ = ["PositionalEncodingWidget", "WordOrderWidget"]
