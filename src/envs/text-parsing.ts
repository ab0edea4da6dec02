import type { SchemaSpace } from "./spaces/index.js";
import type { TextInterface } from "./text-interface.js";

/** Creates the text interface of numbered actions, whose names are the choices. */
export function createChoiceText<Observation>({
  names,
  synonyms,
  ...text
}: Pick<TextInterface<Observation, number>, "systemPrompt" | "formatObservation" | "historyTurns"> & {
  readonly names: readonly string[];
  readonly synonyms?: Readonly<Record<string, number>>;
}): TextInterface<Observation, number> {
  return {
    ...text,
    parseAction: (completion) => findLastNamedAction(completion, names, synonyms),
    formatAction: (action) => names[action],
    choices: names,
  };
}

/**
 * Creates the text interface of an action space that is a schema: completions are its choices, or
 * JSON.
 */
export function createSchemaText<Observation, Action>({
  actionSpace,
  ...text
}: Pick<TextInterface<Observation, Action>, "systemPrompt" | "formatObservation" | "historyTurns"> & {
  readonly actionSpace: SchemaSpace<Action>;
}): TextInterface<Observation, Action> {
  const { choices, jsonSchema } = actionSpace;
  return {
    ...text,
    parseAction: (completion) => actionSpace.parse(completion),
    formatAction: (action) => actionSpace.format(action),
    ...(choices === undefined ? { jsonSchema } : { choices }),
  };
}

/**
 * Formats a number with its sign and a fixed number of decimals: +0.042, -1.500; zero has a plus
 * sign.
 */
export function formatSigned(value: number, decimals: number): string {
  const text = value.toFixed(decimals);
  if (Number(text) === 0) return `+${(0).toFixed(decimals)}`;
  return text.startsWith("-") ? text : `+${text}`;
}

/**
 * Finds the action named last in a completion, ignoring case, or else the last integer that is an
 * action's index. Returns undefined when there is neither.
 */
export function findLastNamedAction(
  completion: string,
  names: readonly string[],
  synonyms: Readonly<Record<string, number>> = {},
): number | undefined {
  const named = findLastNamed(completion, names, synonyms);
  if (named !== undefined) return named;
  const index = parseLastNumber(completion);
  return index !== undefined && Number.isInteger(index) && index >= 0 && index < names.length ? index : undefined;
}

/** Finds the action named last in a text, by whole words and ignoring case. */
export function findLastNamed(
  text: string,
  names: readonly string[],
  synonyms: Readonly<Record<string, number>> = {},
): number | undefined {
  const candidates = [...names.map((name, action) => [name, action] as const), ...Object.entries(synonyms)];
  const lowerCaseText = text.toLowerCase();
  let best: { position: number; length: number; action: number } | undefined;
  for (const [word, action] of candidates) {
    const position = findLastWord(lowerCaseText, word.toLowerCase());
    // Of two names that end at the same position ("up" in "pick up"), the longer one wins.
    const end = position + word.length;
    const bestEnd = best === undefined ? -1 : best.position + best.length;
    if (position >= 0 && (end > bestEnd || (end === bestEnd && word.length > (best?.length ?? 0))))
      best = { position, length: word.length, action };
  }
  return best?.action;
}

/** Returns the index of the last whole-word occurrence of `word`, or -1. */
function findLastWord(text: string, word: string): number {
  for (let index = text.lastIndexOf(word); index >= 0; index = index === 0 ? -1 : text.lastIndexOf(word, index - 1)) {
    const before = text[index - 1] ?? " ";
    const after = text[index + word.length] ?? " ";
    if (!/[\p{L}\p{N}_]/u.test(before) && !/[\p{L}\p{N}_]/u.test(after)) return index;
  }
  return -1;
}

/** Parses the last number in a text, with sign and decimals; undefined when there is none. */
export function parseLastNumber(text: string): number | undefined {
  const matches = text.match(/[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/g);
  return matches === null ? undefined : Number(matches[matches.length - 1]);
}
