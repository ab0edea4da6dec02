import { WHITESPACE } from "./text-functions.js";

const spaces = new RegExp(`^[${WHITESPACE}]+$`);
const cased = /\p{Cased}/u;

function isTitle(text: string): boolean {
  let isAfterCased = false;
  let hasCased = false;
  for (const character of text) {
    const isUpper = /[\p{Lu}\p{Lt}]/u.test(character);
    const isLower = /\p{Ll}/u.test(character);
    if ((isUpper && isAfterCased) || (isLower && !isAfterCased)) return false;
    isAfterCased = isUpper || isLower;
    hasCased ||= isAfterCased;
  }
  return hasCased;
}

/** Digits without a decimal value, such as superscripts: Unicode's Numeric_Type=Digit. */
const otherDigits =
  "\u00b2\u00b3\u00b9\u1369-\u1371\u19da\u2070\u2074-\u2079\u2080-\u2089\u2460-\u2468\u2474-\u247c\u2488-\u2490\u24ea\u24f5-\u24fd\u24ff\u2776-\u277e\u2780-\u2788\u278a-\u2792";
/** Numeric characters that are letters: Unicode's Numeric_Type=Numeric of Han characters. */
const hanNumerals = "〇一二三四五六七八九十百千万億兆亿壹贰叁肆伍陆柒捌玖拾佰仟貳叄陸萬零";

/** Methods of strings that test their characters. */
export const characterTests: ReadonlyMap<string, (text: string) => boolean> = new Map<
  string,
  (text: string) => boolean
>([
  ["isalpha", (text) => /^\p{L}+$/u.test(text)],
  ["isdecimal", (text) => /^\p{Nd}+$/u.test(text)],
  ["isdigit", (text) => new RegExp(`^[\\p{Nd}${otherDigits}]+$`, "u").test(text)],
  ["isnumeric", (text) => new RegExp(`^[\\p{N}${hanNumerals}]+$`, "u").test(text)],
  ["isalnum", (text) => /^[\p{L}\p{N}]+$/u.test(text)],
  ["isascii", (text) => /^\p{ASCII}*$/u.test(text)],
  ["isspace", (text) => spaces.test(text)],
  ["isidentifier", (text) => /^[\p{XID_Start}_]\p{XID_Continue}*$/u.test(text)],
  ["isprintable", (text) => !/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u.test(text)],
  ["isupper", (text) => text === text.toUpperCase() && /[\p{Lu}\p{Lt}]/u.test(text) && !/\p{Ll}/u.test(text)],
  ["islower", (text) => cased.test(text) && !/[\p{Lu}\p{Lt}]/u.test(text)],
  ["istitle", isTitle],
]);
