"""The code of *The Road to GPT*, one module for each chapter.

To find a formula's code, read the chapter's title and open the module of that name:
chapter ``06_self_attention`` is taught from ``tinylib/self_attention.py``.

One alphabet names the axes of every tensor, in formulas, types and einsum strings:

======= ============================================ =====================================
axis    meaning                                      letters used elsewhere
======= ============================================ =====================================
``B``   batch: independent sequences                 N, bsz
``T``   target or query positions                    n, l, L, tgt_len
``S``   source or key positions                      m, n, src_len
``H``   heads                                        h, r, num_heads
``D``   width of the model, of an embedding          d, d_model, C, hidden, n_embd
``d_k`` width of a query and of a key, in one head   p, head_dim
``d_v`` width of a value, in one head                head_dim
``F``   width of the feed-forward layer              d_ff, 4d, intermediate_size
``V``   size of the vocabulary                       vocab_size, |V|
======= ============================================ =====================================

*Scores* are numbers before the softmax, *attention weights* are what comes out
of it, and *parameters* are the numbers that training adjusts.
A mask is boolean, and ``True`` means "may attend".
"""

__version__ = "0.1.0.dev0"
