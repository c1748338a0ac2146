// Words of a text and their spelling, and the plain signs that are meant: plain functions, no page.
// The same as in Python, lab/data/text.py and spelling.py; a test compares both with sentences of
// many languages.

// Python's \s, of which JavaScript's differs.
export const SPACE =
  "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const IDEOGRAPHS =
  "\\u3001-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\uff01-\\uff20\\uff66-\\uff9f" +
  "\\u{20000}-\\u{3ffff}";
const SCRIPTS =
  "Thai Lao Khmer Myanmar Tai_Le New_Tai_Lue Tai_Tham Tai_Viet Javanese Balinese Yi Bopomofo";
const scripts = SCRIPTS.split(" ").map((name) => `\\p{Script=${name}}`);
const UNSPACED = `(?:(?=\\p{L})[${scripts.join("")}])`;
const JOINERS = "\\u200c\\u200d";
const WORD = "\\p{L}\\p{M}\\p{N}_\\u055a-\\u055c\\u055e\\u055f";
const LETTER = `(?:(?!${UNSPACED})(?![${IDEOGRAPHS}])[${WORD}${JOINERS}])`;
const EDGE = `(?![${WORD}])`;
const CHARACTER =
  `(?:[${IDEOGRAPHS}]|${UNSPACED})` + `[\\p{M}${JOINERS}\\u0e33\\u0eb3\\uff9e\\uff9f]*`;
const UNDER = "\\u1039\\u17d2\\u1a60\\u1b44\\ua9c0";
const PICTURE = "\\p{Extended_Pictographic}[\\p{M}\\p{Emoji_Modifier}\\u{e0020}-\\u{e007f}]*";
const INVERTED =
  "-(?:t-)?(?:je|tu|il|elle|on|nous|vous|ils|elles|ce|moi|toi|lui|leur|les|la|le|y|en|ci|là)" +
  EDGE;
const ENDING = `'(?:s|m|d|re|ve|ll)${EDGE}`;
const ELISION =
  "(?<!')(?:[cçdjlmnst]|qu|jusqu|lorsqu|presqu|puisqu|quelqu|quoiqu)'" +
  "|(?:v|gl|un|all|dall|dell|nell|sull|quell|bell|sant|quest|com|dov|anch|tutt)'" +
  "(?=[aeiouàèéìòùh])";
const WITHIN =
  `(?!${INVERTED})-|(?!${ENDING})'|[\\u00b7\\u05be]` +
  '|(?<=\\p{Script=Hebrew})["\\u05f3\\u05f4](?=\\p{Script=Hebrew})' +
  `|:(?=\\p{L}{1,3}${EDGE})`;
const TOKEN = new RegExp(
  [
    `\\p{RI}{2}|${PICTURE}(?:\\u200d${PICTURE})*`,
    `${CHARACTER}(?:(?<=[${UNDER}])${CHARACTER})*`,
    `https?://[^${SPACE}<>"]*[\\p{L}\\p{N}/]`,
    `(?<![${WORD}.+-])[${WORD}.+-]+@[${WORD}]+(?:[.-][${WORD}]+)+`,
    `aujourd'hui|o'clock|n't${EDGE}|${LETTER}+?(?=n't${EDGE})|${ENDING}`,
    ELISION,
    INVERTED,
    `(?:(?<![^${SPACE}(\\[])[-+−])?\\p{Nd}+(?:[.,:'\\u066b\\u066c]\\p{Nd}+)*\\p{M}*`,
    `(?![${JOINERS}])${LETTER}+(?:(?:${WITHIN})${LETTER}+)*` +
      `(?:[\\u0f0b\\u0f0c]|-(?=[${SPACE}]+\\p{L}))?`,
    `[^${WORD}${JOINERS}${SPACE}]\\p{M}*`,
  ].join("|"),
  "gu",
);
const INVISIBLE = /[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu;

/** tinylib.lab.data.tokenise. */
export function tokenise(text) {
  const plain = text.replace(INVISIBLE, "").normalize("NFC").replaceAll("İ", "i");
  return plain.replaceAll("’", "'").toLowerCase().match(TOKEN) ?? [];
}

const MEANT = {
  " ":
    "\t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005" +
    "\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
  "\n": "\x0b\x0c\x85\u2028\u2029",
  "...": "…",
  "'": "‘’‚‛′",
  '"': "“”„‟″«»",
  "-": "‐‑‒–—―−",
};
const PLAIN_SIGNS = new Map(
  Object.entries(MEANT).flatMap(([plain, signs]) => Array.from(signs, (sign) => [sign, plain])),
);

/** As plainly() in Python: the signs that are meant, where `known` is false of those typed. */
export const plainly = (text, known) =>
  Array.from(text.replace(/\r\n?/g, "\n"), (sign) => {
    const plain = sign.search(INVISIBLE) === 0 ? "" : (PLAIN_SIGNS.get(sign) ?? sign);
    return known(sign) || !Array.from(plain).every(known) ? sign : plain;
  }).join("");

const CLOSED_BY = new Map(
  Object.entries({ '"': '"', "'": "'", "“": "”", "‘": "’'", "„": "“”", "‚": "‘'", "”": "”" }),
);
for (const [one, other] of ["«»", "»«", "‹›", "›‹"]) CLOSED_BY.set(one, other);

const fullMatch = (pattern) => {
  const found = new RegExp(`^(?:${pattern})$`, "su");
  return (token = "") => found.test(token);
};
const [isWord, isLetter, isNumber] = ["\\p{L}.*", "\\p{L}", "[-+−]?\\p{Nd}.*"].map(fullMatch);
const isOfNumber = fullMatch("[%‰°]|s|st|nd|rd|th|er|ère|ème|h\\p{Nd}\\p{Nd}");
const [isLeft, isRight] = [
  "(?:\\p{Terminal_Punctuation}|[\\p{Pe}…·՝/])|n't|[-']\\p{L}.*",
  "[\\p{Ps}¿¡#@/\\u1361]|.+['\\u0f0b\\u0f0c]",
].map(fullMatch);
const [isRange, isCurrency, isRepeated] = ["[-‑–]", "\\p{Sc}", "[-*=+~<>|\\\\]"].map(fullMatch);
const isDutch = fullMatch("avonds|middags|morgens|nachts|ochtends|winters|zomers");
const isHyphened = fullMatch(".*-\\p{L}");
const [isIdeograph, isUnspaced] = [`[${IDEOGRAPHS}].*`, `${UNSPACED}.*`].map(fullMatch);
const isForeign = fullMatch(".*(?!\\p{Script=Latin})\\p{L}.*");
const [isCut, isCutBefore] = [".*[sxz]|po|mo", "em|tis|twas|til|cause|[kmnrt]|\\p{Nd}.*"].map(
  fullMatch,
);

/** tinylib.lab.data.joined: tokens as most languages write them. */
export function spelt(tokens) {
  const [roles, foreign] = [quotations(tokens), tokens.some(isForeign)];
  const tight = (i) => {
    const [before, a, b, after] = [-2, -1, 0, 1].map((by) => tokens[i + by]);
    const [opened, closed] = [roles.get(i - 1) === "opens", roles.get(i) === "closes"];
    if (opened || closed) return foreign || !((opened && a === "«") || (closed && b === "»"));
    if (roles.has(i)) return isRight(a) || isIdeograph(a);
    return (
      (isLeft(b) && !(b === "'s" && isDutch(after))) ||
      (a === "'" && isHyphened(before)) ||
      isRight(a) ||
      isIdeograph(a) ||
      isIdeograph(b) ||
      (isUnspaced(a) && isUnspaced(b)) ||
      (isNumber(a) && (isOfNumber(b) || (isRange(b) && isNumber(after)))) ||
      (isNumber(b) && isRange(a) && isNumber(before)) ||
      (isNumber(b) && isCurrency(a) && !isNumber(before)) ||
      (a === "°" && (b === "c" || b === "f")) ||
      (a === "." && after === "." && isLetter(before) && isLetter(b)) ||
      (a === "&" && isLetter(before) && isLetter(b)) ||
      (b === "&" && isLetter(a) && isLetter(after)) ||
      (a === b && isRepeated(a))
    );
  };
  return tokens.map((token, i) => (i === 0 || tight(i) ? token : ` ${token}`)).join("");
}

/** For the place of each quotation mark whether it "opens" or "closes" what it stands at. */
function quotations(tokens) {
  const roles = new Map();
  let openAt = [];
  const endsWord = (i) => isCut(tokens[i - 1]) && isWord(tokens[i + 1]);
  tokens.forEach((token, i) => {
    const opener = openAt.findLastIndex((j) => CLOSED_BY.get(tokens[j]).includes(token));
    if (opener >= 0) {
      roles.set(openAt[opener], "opens").set(i, "closes");
      openAt = openAt.slice(0, opener);
      return;
    }
    const left =
      token === "'" ? tokens.flatMap((other, j) => (other === "'" && j >= i ? j : [])) : [];
    if (left.length && endsWord(i) && (left.length % 2 || endsWord(left[1])))
      roles.set(i, "closes");
    else if (CLOSED_BY.has(token)) openAt.push(i);
  });
  tokens.forEach((token, i) => {
    if (roles.has(i) || token.length > 1 || !"\"'“‘„‚”’«»‹›".includes(token)) return;
    const [before, after] = [tokens[i - 1], tokens[i + 1]];
    const closes =
      token === "'"
        ? isWord(before) && !isCutBefore(after)
        : token === '"'
          ? isNumber(before) || !after
          : "”’»›".includes(token);
    roles.set(i, closes ? "closes" : "opens");
  });
  return roles;
}
