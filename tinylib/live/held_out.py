"""Held-out sentences that the translators are tried on, and the words that they find likeliest."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

MOST_WORDS = 17  # as many as the sentences of the *length* split have

CANDIDATES = 5

HELD_OUT = {
    "much like its training sentences": """
the birds always look for her .
les oiseaux la cherchent toujours .
the eight old letters are not light .
les huit vieilles lettres ne sont pas légères .
she does not often look for him .
elle ne le cherche pas souvent .
a pretty grey bird that a small bee finds sings .
un joli oiseau gris qu' une petite abeille trouve chante .
they give eight gardens to the eight happy friends .
ils donnent huit jardins aux huit amis heureux .
she is not always in front of the pretty light bridge .
elle n' est pas toujours devant le joli pont léger .
the bird looks for them in front of the heavy table .
l' oiseau les cherche devant la table lourde .
she never sees a big bridge under the small house .
elle ne voit jamais de grand pont sous la petite maison .
the grey dogs never show a church to the friend .
les chiens gris ne montrent jamais d' église à l' ami .
the mouse that the big horses wait for is very tired .
la souris que les grands chevaux attendent est très fatiguée .
the woman that they never look for often loves the letter .
la femme qu' ils ne cherchent jamais aime souvent la lettre .
""",
    "with an adjective and a noun that it never saw together": """
the flower is never green .
la fleur n' est jamais verte .
they do not carry any famous birds .
ils ne portent pas d' oiseaux célèbres .
a red mouse that he does not find works .
une souris rouge qu' il ne trouve pas travaille .
you wait for them on an old red book .
vous les attendez sur un vieux livre rouge .
some good churches are behind the old light house .
de bonnes églises sont derrière la vieille maison légère .
the good white horses do not wait for the boys .
les bons chevaux blancs n' attendent pas les garçons .
you do not show the flowers to some small happy girls .
vous ne montrez pas les fleurs à de petites filles heureuses .
he never shows the big bridge to the big quiet king .
il ne montre jamais le grand pont au grand roi tranquille .
""",
    "longer than any that it was trained on": """
i do not often look at any cars but she sings behind a car .
je ne regarde pas souvent de voitures mais elle chante derrière une voiture .
the mice that draw him give a good grey boat to the tired kings .
les souris qui le dessinent donnent un bon bateau gris aux rois fatigués .
some big girls that work with a white bird do not love a nurse .
de grandes filles qui travaillent avec un oiseau blanc n' aiment pas d' infirmière .
the green bird that the cat does not look at is with the king .
l' oiseau vert que le chat ne regarde pas est avec le roi .
she gives the white churches to the bees but the nine cars are grey .
elle donne les églises blanches aux abeilles mais les neuf voitures sont grises .
a cow and the men do not run in front of the four light tables .
une vache et les hommes ne courent pas devant les quatre tables légères .
the small mouse that does not hear the old black tree often sees a school .
la petite souris qui n' entend pas le vieil arbre noir voit souvent une école .
the dog that they do not hear gives ten small tables to a quiet woman .
le chien qu' ils n' entendent pas donne dix petites tables à une femme tranquille .
we show a white book to the cats but six pretty red cars are green .
nous montrons un livre blanc aux chats mais six jolies voitures rouges sont vertes .
the small grey letter that is in front of the books is never on the flower .
la petite lettre grise qui est devant les livres n' est jamais sur la fleur .
the king that the girl looks for often gives the good school to the big horse .
le roi que la fille cherche donne souvent la bonne école au grand cheval .
""",
}
"""Pairs of the splits *test*, *composition* and *length*, to be tried: English, then French."""


def held_out(texts: Mapping[str, str] = HELD_OUT) -> dict[str, dict[str, str]]:
    """The French of each sentence, for each kind of them."""

    def pairs(text: str) -> dict[str, str]:
        lines = text.strip().splitlines()
        return dict(zip(lines[::2], lines[1::2], strict=True))

    return {kind: pairs(text) for kind, text in texts.items()}


def likeliest_of(logits: Float[Tensor, "T V"]) -> tuple[Tensor, Tensor, Tensor]:
    """The likeliest tokens (T, 5), their probabilities, and the logits that these come from (T, 6).

    The sixth logit stands for all other tokens: the logarithm of the sum of their powers of e.
    """
    best = logits.softmax(-1).topk(CANDIDATES)
    others = logits.scatter(-1, best.indices, -torch.inf).logsumexp(-1, keepdim=True)
    return best.indices, best.values, torch.cat([logits.gather(-1, best.indices), others], -1)
