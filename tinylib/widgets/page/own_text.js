// A reader's own text: whether a model can learn it, and a number that names it.

const FIRST_OWN = 2; // as in gpt_trainer.py: the course's texts have the numbers before
const NUMBERS = 16_000_000;
const TOLD_APART = 127;

/** A number that names a text, as number_of() of gpt_trainer.py has it. */
export function numberOf(text) {
  let found = 0;
  for (const character of text) found = (found * 31 + character.codePointAt(0)) % NUMBERS;
  return FIRST_OWN + found;
}

const counted = (number) => number.toLocaleString("en-GB");

/** The text as it can be used, and what is to be said of it; or what is wrong with it. */
export function usable(text, [fewest, most]) {
  const clean = text.replace(/\r\n?/g, "\n").replace(/\p{Surrogate}/gu, "\ufffd");
  const characters = Array.from(clean);
  const { length } = characters;
  if (length < fewest) {
    return {
      error:
        `The text has ${counted(length)} characters: give ${counted(fewest)} or more, ` +
        "so that there is something to learn and something to be held out.",
    };
  }
  const kept = length > most ? characters.slice(0, most) : characters;
  const kinds = new Set(kept).size;
  const notes = [
    ...(length > most ? [`Only its first ${counted(most)} characters are used.`] : []),
    ...(kinds === 1 ? ["It is one character again and again: there is nothing to learn."] : []),
    ...(kinds > TOLD_APART
      ? [
          `It has ${counted(kinds)} different characters: the ${TOLD_APART} commonest are told ` +
            "apart, and all others are one, □.",
        ]
      : []),
  ];
  return { text: kept.join(""), length: kept.length, note: notes.join(" ") };
}
