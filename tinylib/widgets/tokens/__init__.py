from tinylib.widgets.tokens.tokens import TokensWidget

__all__ = ["TokensWidget"]
