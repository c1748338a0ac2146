// Numbers: counted, limited, and written as text.

/** A list of `count` values; each is made from its index. */
export const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));

/** “1, 2 and 5” */
export const listed = (names) =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

/** The number between two ends that is next to `value`. */
export const within = (value, [low, high]) => Math.max(low, Math.min(high, value));

/** "5e-7" as 5 × 10^{−7}, for typeset(); all other numbers as they are. */
export const powerOfTen = (number) =>
  number.replace(/e([+-])(\d+)$/, (_, sign, power) => ` × 10^{${sign === "-" ? "−" : ""}${power}}`);

/** A number as a heat map shows it: about three digits, and ±∞ by its sign. */
export function format(value) {
  if (Math.abs(value) === Infinity) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0"; // unlike 0.00, which is rounded
  const size = Math.abs(value);
  if (size >= 1e4) return value.toExponential(0).replace("-", "−").replace("e+", "e");
  return value
    .toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)
    .replace(/^-(?=0\.00)/, "")
    .replace("-", "−");
}

/** The same, but of what would read 0.00 its first digit and its power of ten: 3e−7. */
export const formatTiny = (value) =>
  value && Math.abs(value) < 0.005 ? value.toExponential(0).replaceAll("-", "−") : format(value);

/** With three decimals, for a sum that would not seem to add up with two. */
export const thousandths = (value) =>
  value
    .toFixed(3)
    .replace(/^-(?=0\.000)/, "")
    .replace("-", "−");

/** A number as an editor shows it: four decimals at most, or four digits of a very small one. */
export function formatExact(value) {
  const small = value !== 0 && Math.abs(value) < 1e-3;
  return String(Number(small ? value.toPrecision(4) : value.toFixed(4)));
}

/** A number in a table to edit: as in a computed one, as long as this rounds nothing off. */
export function entryText(value) {
  const text = format(value);
  return Number(text.replace("−", "-")) === value ? text : formatExact(value).replace("-", "−");
}

/** A whole number with its thousands apart: 16 384, with narrow no-break spaces. */
export const whole = (value) => value.toLocaleString("en-GB").replaceAll(",", "\u202f");

/** A share in per cent; only what rounds to 100.0 is shown as 100, and only 0 itself as 0. */
export function percent(share) {
  if (share === 0) return "0 %";
  if (share < 0.001) return "< 0.1 %";
  return share >= 0.9995 ? "100 %" : `${(100 * share).toFixed(1)} %`;
}

/** A probability in per cent. A softmax gives no 0: one in a page was rounded to it when stored. */
export const percentOf = (p) => percent(p || Number.MIN_VALUE);
