from tinylib.widgets.seq2seq_attention.seq2seq_attention import Seq2SeqAttentionWidget

__all__ = ["Seq2SeqAttentionWidget"]
