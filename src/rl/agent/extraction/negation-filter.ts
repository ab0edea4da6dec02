import { escapeRegExp } from "./strip-punctuation.js";

/** Idioms with words such as "right", "left" or "up" that are not directions. */
const NON_DECISION_PHRASES: readonly RegExp[] = [
  /\b(?:you(?:['’]re| are)|that(?:['’]s| is)|it(?:['’]s| is)|i(?:['’]m| am)|all|quite|too|absolutely|always) right\b/gi,
  /\bright (?:now|away|there|here|after|before|thing|answer|word|place|direction|triangles?|angles?)\b/gi,
  /\bthe (?:right|left) (?:hand|column|edge|corner|half)\b/gi,
  /\b(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten)(?: (?!steps?|squares?|cells?|tiles?|fields?|spaces?|blocks?|places?|units?|times?|to|the)\p{L}+){0,2} left\b/giu,
  /\b(?:nothing|none|anyone|anything|what(?:['’]s| is)|ha(?:s|ve) (?:\p{L}+ )?|already|no one|room|pulls?|guess(?:es)?|rows?|cards?|i|you|he|she|they|it) left\b/giu,
  /\b(?:break|breaks|breaking|calm|settle|write|written|slow) (?:\p{L}+ )?down\b/giu,
  /\b(?:upside|half-?way|further) down\b|\b(?:up|down) (?:to|until|for)\b|\bup and down\b/gi,
  /\b(?:add|adding|adds|added|fill|fills|filling|filled|make|makes|making|made|give|gives|gave|end|ends|ended|set|sum|sums|show|shows|wake|build|speed|turns?|turned|come|comes|came|sign|warm|clean|mix|mixed|back) (?:\p{L}+ )?up\b/giu,
  /\bstay(?:s|ing|ed)? (?:tuned|safe|calm|focused|with me)\b/gi,
  /\b(?:be|being|been|is|are|was|were|get|gets|got|getting) hit\b/gi,
  /\bright side up\b|, right\W*$/gi,
];

const QUOTES = "[\"'“”‘’*`]*";
/** "a" and "i" used as words. */
const ARTICLE = /\ba(?= +\p{Ll})|^\s*A(?= +(?!is|would|because|since|seems|looks)\p{Ll})|\bi(?=['’ ])/gu;
const OPEN_QUESTION = /\bwhether\b.*$/gi;
/** Negations, and the function words between them and the choice. */
const NEGATION =
  "(?:\\bnot|\\bneither|n['’]t|\\bcannot|\\bnever|\\bnor|\\bno|\\binstead of|\\brather than|\\bavoid(?:ing)?|\\bwithout)";
const NEGATION_GAP = `(?:\\s+(?:to|be|a|an|the|go|goes|going|one|taking|choose|choosing|take|do|we|you|i))*\\s+${QUOTES}`;
/** Separator between the entries of a list. */
const LIST_SEPARATOR = `${QUOTES}\\s*(?:,\\s*(?:or|and)?|/|\\||\\b(?:or|and|nor|versus|vs)\\b\\.?)\\s*(?:(?:to|a|an|the|either|simply|just)\\s+)*${QUOTES}`;

/**
 * Returns a function that blanks out mentions that are not decisions: compounds ("left-hand"),
 * negations ("not left", "rather than hit", "left: no"), lists ("hit or stay"), articles, and
 * idioms ("you're right", "3 pulls left").
 */
export function removeNonDecisions(choices: readonly string[]): (sentence: string) => string {
  const longestFirst = [...choices].sort((a, b) => b.length - a.length);
  const patterns = longestFirst.map((choice) => escapeRegExp(choice).replace(/\s+/g, "\\s+"));
  const anyChoice = `(?<![\\p{L}\\p{N}_])(?:${patterns.join("|")})(?![\\p{L}\\p{N}_])`;
  const choice = new RegExp(anyChoice, "giu");
  const negated = new RegExp(
    `${NEGATION}${NEGATION_GAP}${anyChoice}|${anyChoice}${QUOTES}\\s*[:=]\\s*(?:no|not)\\b`,
    "giu",
  );
  const list = new RegExp(`${anyChoice}(?:${LIST_SEPARATOR}${anyChoice})+`, "giu");
  const multiWordChoices = choices.filter((each) => each.includes(" ")).map((each) => each.toLowerCase());
  return (sentence) => {
    const cleaned = resolveCompounds(sentence, choices)
      .replace(ARTICLE, blankOut)
      .replace(OPEN_QUESTION, blankOut)
      .replace(negated, blankOut)
      .replace(list, (found) => (countDistinct(found.match(choice)) > 1 ? blankOut(found) : found));
    // An idiom may contain a choice of several words: "pick up".
    const containsChoice = (found: string) => multiWordChoices.some((each) => found.toLowerCase().includes(each));
    return NON_DECISION_PHRASES.reduce(
      (rest, phrase) => rest.replace(phrase, (found) => (containsChoice(found) ? found : blankOut(found))),
      cleaned,
    );
  };
}

/** Spells compounds that are a choice like the choice, and blanks out other compounds. */
function resolveCompounds(text: string, choices: readonly string[]): string {
  const isChoice = (word: string) => choices.some((choice) => choice.toLowerCase() === word.toLowerCase());
  return text.replace(/(?<![\p{L}\p{N}])[\p{L}\p{N}]+(?:[-_][\p{L}\p{N}]+)+/gu, (word) => {
    const spaced = word.replace(/[-_]/g, " ");
    return isChoice(word) ? word : isChoice(spaced) ? spaced : blankOut(word);
  });
}

function countDistinct(mentions: readonly string[] | null): number {
  return new Set(mentions?.map((each) => each.toLowerCase())).size;
}

function blankOut(text: string): string {
  return " ".repeat(text.length);
}
