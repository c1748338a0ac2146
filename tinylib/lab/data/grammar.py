"""A small grammar of English and French at once: it writes a sentence in both, word by word.

The English is written from left to right; each French word remembers the places of the English
words that it comes from. So every sentence comes with its gold alignment, and an English sentence
has exactly one translation. Where English leaves the French open, a fixed rule decides: *you* is
*vous*, several people; *I*, *we*, *you* and *they* are masculine; so are a child and a friend.

- The article and the adjective follow the noun in gender and number, the verb its subject.
- Most adjectives stand behind their noun (*the red car*, *la voiture rouge*), a few before it
  (*the small car*, *la petite voiture*); *old* is *vieux*, but *vieil* before a vowel.
- *Not* is *ne ... pas*, *never* is *ne ... jamais*; *a* and *any* then become *de*.
- *Him*, *her* and *them* move before the verb: *she sees him*, *elle le voit*.
- Before a vowel *le, la, je, ne, de, que* lose theirs, and the rest is a token of its own:
  *l' arbre*, *j' aime*, *n' aime pas*. *À* joins *le* and *les* to *au* and *aux*.
- *Looks for* is one word, *cherche*; *in front of* is *devant*.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple, TypeVar, no_type_check

Choice = TypeVar("Choice")


class Noun(NamedTuple):
    """(singular, plural) in both languages; ``kind`` is "person", "animal" or "thing"."""

    english: tuple[str, str]
    french: tuple[str, str]
    feminine: bool
    kind: str


class Adjective(NamedTuple):
    """French: masculine and feminine singular, then plural, then masculine before a vowel."""

    english: str
    french: tuple[str, str, str, str, str]


class Verb(NamedTuple):
    """English: (base, third person, particle if any). French: je, il, nous, vous, ils."""

    english: tuple[str, str, str]
    french: tuple[str, str, str, str, str]


def nouns(kind: str, table: str) -> list[Noun]:
    rows = [line.split() for line in table.strip().splitlines()]
    return [Noun((one, many), (un, des), g == "f", kind) for one, many, un, des, g in rows]


def adjectives(table: str) -> list[Adjective]:
    rows = [line.split() for line in table.strip().splitlines()]
    return [Adjective(word, (m, f, mm, ff, vowel)) for word, m, f, mm, ff, vowel in rows]


def verbs(table: str) -> list[Verb]:
    halves = [line.split("|") for line in table.strip().splitlines()]
    english = [(*left.split(), "")[:3] for left, _ in halves]
    french = [tuple(right.split()) for _, right in halves]
    return [Verb(*both) for both in zip(english, french, strict=True)]  # type: ignore[arg-type]


ANIMALS = nouns(
    "animal",
    """
cat       cats       chat        chats        m
dog       dogs       chien       chiens       m
horse     horses     cheval      chevaux      m
bird      birds      oiseau      oiseaux      m
mouse     mice       souris      souris       f
bee       bees       abeille     abeilles     f
cow       cows       vache       vaches       f
""",
)
PEOPLE = nouns(
    "person",
    """
child     children   enfant      enfants      m
friend    friends    ami         amis         m
man       men        homme       hommes       m
woman     women      femme       femmes       f
boy       boys       garçon      garçons      m
girl      girls      fille       filles       f
king      kings      roi         rois         m
queen     queens     reine       reines       f
nurse     nurses     infirmière  infirmières  f
""",
)
THINGS = nouns(
    "thing",
    """
house     houses     maison      maisons      f
garden    gardens    jardin      jardins      m
tree      trees      arbre       arbres       m
flower    flowers    fleur       fleurs       f
car       cars       voiture     voitures     f
boat      boats      bateau      bateaux      m
table     tables     table       tables       f
book      books      livre       livres       m
letter    letters    lettre      lettres      f
school    schools    école       écoles       f
church    churches   église      églises      f
bridge    bridges    pont        ponts        m
hat       hats       chapeau     chapeaux     m
""",
)
ANIMATE = ANIMALS + PEOPLE
BEFORE = adjectives("""
small     petit      petite      petits      petites      petit
big       grand      grande      grands      grandes      grand
pretty    joli       jolie       jolis       jolies       joli
good      bon        bonne       bons        bonnes       bon
old       vieux      vieille     vieux       vieilles     vieil
""")
COLOURS = adjectives("""
red       rouge      rouge       rouges      rouges       rouge
black     noir       noire       noirs       noires       noir
white     blanc      blanche     blancs      blanches     blanc
green     vert       verte       verts       vertes       vert
grey      gris       grise       gris        grises       gris
""")
WEIGHTS = adjectives("""
heavy     lourd      lourde      lourds      lourdes      lourd
light     léger      légère      légers      légères      léger
""")
MOODS = adjectives("""
quiet     tranquille tranquille  tranquilles tranquilles  tranquille
happy     heureux    heureuse    heureux     heureuses    heureux
sad       triste     triste      tristes     tristes      triste
tired     fatigué    fatiguée    fatigués    fatiguées    fatigué
strong    fort       forte       forts       fortes       fort
famous    célèbre    célèbre     célèbres    célèbres     célèbre
""")
BEHIND = {"person": MOODS, "animal": COLOURS + MOODS, "thing": COLOURS + WEIGHTS}
"""The adjectives that may stand behind a noun of each kind."""
INTRANSITIVE = verbs("""
sleep  sleeps      | dors     dort     dormons      dormez      dorment
sing   sings       | chante   chante   chantons     chantez     chantent
dance  dances      | danse    danse    dansons      dansez      dansent
run    runs        | cours    court    courons      courez      courent
work   works       | travaille travaille travaillons travaillez travaillent
""")
TRANSITIVE = verbs("""
see    sees        | vois     voit     voyons       voyez       voient
love   loves       | aime     aime     aimons       aimez       aiment
find   finds       | trouve   trouve   trouvons     trouvez     trouvent
hear   hears       | entends  entend   entendons    entendez    entendent
draw   draws       | dessine  dessine  dessinons    dessinez    dessinent
carry  carries     | porte    porte    portons      portez      portent
know   knows       | connais  connaît  connaissons  connaissez  connaissent
choose chooses     | choisis  choisit  choisissons  choisissez  choisissent
look   looks   at  | regarde  regarde  regardons    regardez    regardent
look   looks   for | cherche  cherche  cherchons    cherchez    cherchent
wait   waits   for | attends  attend   attendons    attendez    attendent
""")
DITRANSITIVE = verbs("""
give   gives       | donne    donne    donnons      donnez      donnent
show   shows       | montre   montre   montrons     montrez     montrent
""")
BE = Verb(("are", "is", ""), ("suis", "est", "sommes", "êtes", "sont"))
NUMBERS = [
    *zip(
        "two three four five six seven eight nine ten".split(),
        "deux trois quatre cinq six sept huit neuf dix".split(),
        strict=True,
    )
]
PLACES = [
    ("in", "dans"),
    ("on", "sur"),
    ("under", "sous"),
    ("behind", "derrière"),
    ("in front of", "devant"),
]
ADVERBS = [("often", "souvent"), ("always", "toujours")]

HELD_OUT = frozenset(
    (adjective.english, noun.english[0])
    for n, noun in enumerate(ANIMATE + THINGS)
    for a, adjective in enumerate(BEFORE + BEHIND[noun.kind])
    if (a + n) % 9 == 0
)
"""The pairs (adjective, noun), a ninth of all, that only the *composition* split may hold."""


class Word(NamedTuple):
    """A French word, the places of the English words that it translates, and its class."""

    form: str
    at: tuple[int, ...]
    kind: str


class Subject(NamedTuple):
    """What verb and adjective agree with. ``person`` counts je, il, nous, vous, ils from 0."""

    words: list[Word]
    person: int
    feminine: bool = False
    plural: bool = False
    nouns: tuple[Noun, ...] = ()

    @property
    def animate(self) -> bool:
        return all(noun.kind != "thing" for noun in self.nouns)


PRONOUNS = [
    ("i", "je", 0, False, False),
    ("he", "il", 1, False, False),
    ("she", "elle", 1, True, False),
    ("we", "nous", 2, False, True),
    ("you", "vous", 3, False, True),
    ("they", "ils", 4, False, True),
]
CLITICS = [("him", "le"), ("her", "la"), ("them", "les")]


ELISIONS = {"le": "l'", "la": "l'", "je": "j'", "ne": "n'", "de": "d'", "que": "qu'"}
CONTRACTIONS = {"le": "au", "les": "aux"}


VOWEL = re.compile("(?!huit$)[aeiouéêh]")
"""What a word begins with if *le* becomes *l'* before it: the h of *homme*, not that of *huit*."""


@no_type_check  # its many short calls need no checks of shapes, which take ten times as long
class Sentence:
    """One sentence, drawn word by word from ``random``.

    ``english`` holds the tokens, ``french`` the words, and ``attributes`` each pair (adjective,
    noun) of which the sentence says the one of the other, as in *the red car* and *the car is red*.
    Only ``random.random`` is used: Python promises that it never changes.
    """

    def __init__(self, random: Random):
        self.chance = random.random
        self.english: list[str] = []
        self.attributes: set[tuple[str, str]] = set()
        french = self.clause()
        if self.maybe(0.08):
            french += [self.word("but", "mais", "conjunction"), *self.clause()]
        self.french = contract(elide([*french, self.word(".", ".", "punctuation")]))

    def maybe(self, probability: float) -> bool:
        return self.chance() < probability

    def pick(self, choices: Sequence[Choice]) -> Choice:
        return choices[int(self.chance() * len(choices))]

    def word_ids(self, words: str) -> tuple[int, ...]:
        """Write English words (none, if empty); the places where they stand."""
        start = len(self.english)
        self.english += words.split()
        return tuple(range(start, len(self.english)))

    def word(self, english: str, french: str, kind: str) -> Word:
        return Word(french, self.word_ids(english), kind)

    def clause(self) -> list[Word]:
        subject = self.subject(ANIMATE if self.maybe(0.85) else THINGS)
        return subject.words + self.predicate(subject)

    def subject(self, choices: list[Noun]) -> Subject:
        if choices is ANIMATE and self.maybe(0.58):
            return self.pronoun()
        return self.noun_phrases(choices)

    def pronoun(self) -> Subject:
        english, french, person, feminine, plural = self.pick(PRONOUNS)
        return Subject([self.word(english, french, "pronoun")], person, feminine, plural)

    def noun_phrases(self, choices: list[Noun], denied: bool = False) -> Subject:
        """A noun phrase; or two with *and*; or one with a relative clause."""
        first = self.noun_phrase(choices, denied)
        if denied:
            return first
        if self.maybe(0.1):
            conjunction = self.word("and", "et", "conjunction")
            second = self.noun_phrase(choices)
            words = [*first.words, conjunction, *second.words]
            feminine = first.feminine and second.feminine
            return Subject(words, 4, feminine, True, first.nouns + second.nouns)
        if self.maybe(0.15):
            return first._replace(words=first.words + self.relative_clause(first))
        return first

    def noun_phrase(self, choices: list[Noun], denied: bool = False) -> Subject:
        """Article, number, adjectives, noun. ``denied``: the object of a verb with *ne*."""
        noun, plural, definite = self.pick(choices), self.maybe(0.45), self.maybe(0.6)
        number = self.pick(NUMBERS) if plural and self.maybe(0.3 if definite else 0.6) else None
        before = self.pick(BEFORE) if self.maybe(0.3) else None
        behind = self.pick(BEHIND[noun.kind]) if self.maybe(0.3) else None

        words = []
        if definite:
            article = "les" if plural else "la" if noun.feminine else "le"
            words.append(self.word("the", article, "article"))
        elif number is None:
            a = "any" if denied else "some"
            if not plural:
                adjective = before or behind
                after = adjective.english if adjective else noun.english[0]
                a = "an" if after[0] in "aeiou" else "a"
            article = "des" if plural else "une" if noun.feminine else "un"
            if denied or (plural and before):
                article = "de"
            words.append(self.word(a, article, "article"))
        if number:
            words.append(self.word(*number, "number"))
        small = [self.adjective(before, noun.feminine, plural, noun, True)] if before else []
        red = [self.adjective(behind, noun.feminine, plural, noun)] if behind else []
        thing = self.word(noun.english[plural], noun.french[plural], "noun")
        words += [*small, thing, *red]
        return Subject(words, 4 if plural else 1, noun.feminine, plural, (noun,))

    def adjective(
        self,
        adjective: Adjective,
        feminine: bool,
        plural: bool,
        noun: Noun | None = None,
        before: bool = False,
    ) -> Word:
        form = 2 * plural + feminine
        if noun:
            self.attributes.add((adjective.english, noun.english[0]))
            if before and form == 0 and VOWEL.match(noun.french[0]):
                form = 4
        return self.word(adjective.english, adjective.french[form], "adjective")

    def relative_clause(self, head: Subject) -> list[Word]:
        """*that sees the dog*, *qui voit le chien*; or *that she sees*, *qu' elle voit*."""
        that = self.word_ids("that")
        if self.maybe(0.6):
            return [Word("qui", that, "relative"), *self.predicate(head)]
        subject = self.pronoun() if self.maybe(0.5) else self.noun_phrase(ANIMATE)
        verb, _ = self.verb_group(self.pick(TRANSITIVE), subject)
        return [Word("que", that, "relative"), *subject.words, *verb, *self.perhaps_place(0.1)]

    def predicate(self, subject: Subject) -> list[Word]:
        kind = self.chance() if subject.animate else 0.0
        if kind < 0.18:
            verb, _ = self.verb_group(BE, subject)
            if self.maybe(0.6):
                return verb + self.quality(subject)
            return verb + self.place()
        if kind < 0.52:
            verb, _ = self.verb_group(self.pick(INTRANSITIVE), subject)
            return verb + self.perhaps_place(0.4)
        if kind < 0.61:
            verb, denied = self.verb_group(self.pick(DITRANSITIVE), subject)
            gift = self.noun_phrase(THINGS, denied)
            to = self.word("to", "à", "preposition")
            return [*verb, *gift.words, to, *self.noun_phrase(ANIMATE).words]
        if kind < 0.69:
            verb, _ = self.verb_group(self.pick(TRANSITIVE), subject, self.pick(CLITICS))
            return verb + self.perhaps_place(0.2)
        verb, denied = self.verb_group(self.pick(TRANSITIVE), subject)
        choices = ANIMATE if self.maybe(0.5) else THINGS
        return verb + self.noun_phrases(choices, denied).words + self.perhaps_place(0.15)

    def quality(self, subject: Subject) -> list[Word]:
        """What the subject is: *very happy*, *très heureux*."""
        very = [self.word("very", "très", "adverb")] if self.maybe(0.25) else []
        adjective = self.pick(MOODS if subject.animate else BEHIND["thing"])
        self.attributes.update((adjective.english, noun.english[0]) for noun in subject.nouns)
        return [*very, self.adjective(adjective, subject.feminine, subject.plural)]

    def perhaps_place(self, probability: float) -> list[Word]:
        return self.place() if self.maybe(probability) else []

    def place(self) -> list[Word]:
        if self.maybe(0.2):
            company = self.word("with", "avec", "preposition")
            return [company, *self.noun_phrase(ANIMATE).words]
        preposition = self.word(*self.pick(PLACES), "preposition")
        return [preposition, *self.noun_phrase(THINGS).words]

    def verb_group(
        self, verb: Verb, subject: Subject, clitic: tuple[str, str] | None = None
    ) -> tuple[list[Word], bool]:
        """The verb with its negation, adverb and object pronoun; and whether it is denied."""
        person = subject.person
        base, third, particle = verb.english
        denial = self.pick(("not", "not", "never")) if self.maybe(0.25) else ""
        adverb = self.pick(ADVERBS) if denial != "never" and self.maybe(0.12) else ("", "")
        finite = third if person == 1 else base
        if verb is BE:  # is not often
            at = self.word_ids("am" if person == 0 else finite)
            no = self.word_ids(denial)
            often = self.word(*adverb, "adverb")
        else:  # does not often look for
            if denial == "not":
                self.word_ids("does" if person == 1 else "do")
                finite = base
            no = self.word_ids(denial)
            often = self.word(*adverb, "adverb")
            at = self.word_ids(finite) + self.word_ids(particle)
        him = [self.word(*clitic, "pronoun")] if clitic else []

        ne = [Word("ne", no, "negation")] if denial else []
        pas = [Word("jamais" if denial == "never" else "pas", no, "negation")] if denial else []
        voit = Word(verb.french[person], at, "verb")
        souvent = [often] if often.at else []
        return [*ne, *him, voit, *pas, *souvent], bool(denial)


def elide(words: list[Word]) -> list[Word]:
    """*le arbre* → *l' arbre*, and so for *la, je, ne, de, que*."""
    elided = [
        word._replace(form=ELISIONS[word.form])
        if word.form in ELISIONS and VOWEL.match(after.form)
        else word
        for word, after in pairwise(words)
    ]
    return [*elided, words[-1]]


def contract(words: list[Word]) -> list[Word]:
    """*à le roi* → *au roi*, *à les rois* → *aux rois*: one word from two."""
    contracted: list[Word] = []
    for word in words:
        if word.form in CONTRACTIONS and contracted and contracted[-1].form == "à":
            to = contracted.pop()
            word = Word(CONTRACTIONS[word.form], to.at + word.at, "preposition")
        contracted.append(word)
    return contracted
