import { LlamaGymError } from "../../core/errors.js";
import { type ChatMessage, REASONING_FIELDS } from "./chat-messages.js";
import type { ChatRenderer, RenderOptions } from "./chat-renderer.js";
import type { RenderedText } from "./rendered-text.js";

/** A range [start, end) of UTF-16 positions in a text. */
export type TextRange = readonly [start: number, end: number];

const TEXT_FIELDS = ["content", ...REASONING_FIELDS];

/** A message that is searched in the rendered text. */
export interface Search {
  readonly renderer: ChatRenderer;
  readonly messages: readonly ChatMessage[];
  readonly index: number;
  readonly text: string;
  readonly options: RenderOptions;
  readonly specialTokens: readonly string[];
  /** Ascending positions of the characters of messages that are not the assistant's. */
  readonly others: readonly number[];
}

/** A text before and after a message's content. */
export interface SplitText {
  readonly before: string;
  readonly after: string;
}

/**
 * Finds a message by its characters. `plain` is the conversation through this message with other
 * content, without reasoning and tool calls: it shows the header and the end token.
 */
export function followMessage(search: Search, plain: SplitText | null): TextRange | undefined {
  const { messages, index, text, options, specialTokens } = search;
  const whole = locate(search, index);
  if (!whole) return undefined;
  const start = findStart(search, whole, plain);
  const shortSearch = {
    ...search,
    messages: messages.slice(0, index + 1),
    options: { ...options, addGenerationPrompt: false },
  };
  const short = locate(shortSearch, index);
  const endOfTurn = plain ? findEndToken(plain.after, specialTokens)?.token : undefined;
  const findEnd = (contentEnd: number, closing: string, which: "first" | "last") => {
    const at = endOfTurn === undefined ? -1 : closing.indexOf(endOfTurn);
    const end = at < 0 ? findEndToken(closing, specialTokens, which)?.end : at + endOfTurn!.length;
    return contentEnd + (end ?? closing.trimEnd().length);
  };
  if (short) {
    const shortStart = findStart(shortSearch, short, plain);
    const length = longestCommonPrefix(text.slice(start), short.text.slice(shortStart)).length;
    const contentLength = endOfLast(short) - shortStart;
    // A message that is written alike at the end of the conversation ends there; what follows may
    // repeat its names.
    if (length >= contentLength)
      return [start, findEnd(start + contentLength, text.slice(start + contentLength, start + length), "last")];
  }
  const next = index + 1 < messages.length ? locate(search, index + 1) : null;
  if (short) {
    // A part that is only written at the end of the conversation comes first; the end is written
    // alike.
    const closing = short.text.length - endOfLast(short);
    const end = alignEnd(text, [start, next?.positions[0] ?? text.length], short.text.trimEnd(), closing + 1);
    if (end !== undefined) return [start, end];
  }
  const lastEnd = endOfLast(whole, next?.positions[0]);
  const contentEnd = lastEnd > start ? lastEnd : endOfLast(whole);
  const rest = text.slice(contentEnd);
  if (!short) return [start, findEnd(contentEnd, rest, "first")];
  return [start, findEnd(contentEnd, longestCommonPrefix(rest, short.text.slice(endOfLast(short))), "last")];
}

/**
 * Returns the parts of a message whose range has texts of other messages, such as the results of
 * tools that Gemma 4 writes into the turn with their calls, or lacks the message's text.
 */
export function splitRange(search: Search, range: TextRange): readonly TextRange[] {
  const { renderer, messages, index, text, options, others } = search;
  // The names of calls may be repeated with their results.
  const isText = (field: string, i: number) => i === index && TEXT_FIELDS.includes(field);
  const located = tryCall(() => renderer.locate(messages, isText, options));
  const own = located?.text === text ? located.positions : [];
  const end = range[1];
  // A header may begin with a reasoning block, as the message does.
  const isBefore = own.length > 0 && firstBetween(others, own[0], range[0]) === undefined;
  const start = isBefore ? Math.min(own[0], range[0]) : range[0];
  const other = firstBetween(others, start, end);
  if (other === undefined && (own.length === 0 || firstBetween(own, start, end) !== undefined)) return [[start, end]];
  const parts: TextRange[] = [[start, Math.min(end, findPartEnd(search, start, other ?? end))]];
  for (const position of own) {
    const [partStart, partEnd] = parts.at(-1)!;
    const next = position + String.fromCodePoint(text.codePointAt(position)!).length;
    if (position < partEnd) continue;
    const isSplit = parts.length === 1 || firstBetween(others, partStart, position) !== undefined;
    if (isSplit) parts.push([position, next]);
    else parts[parts.length - 1] = [partStart, next];
  }
  return parts.map((part, i) => (i > 0 && i === parts.length - 1 ? closePart(search, part, end) : part));
}

/** Extends the last part of a message through its end token; its range ends at `end`. */
function closePart({ text, specialTokens, others }: Search, [start, partEnd]: TextRange, end: number): TextRange {
  if (partEnd <= end && firstBetween(others, partEnd, end) === undefined) return [start, end];
  const token = specialTokens.find((special) => special !== "" && text.startsWith(special, partEnd));
  return [start, partEnd + (token?.length ?? 0)];
}

/** Returns where the part of a message before another message's text ends. */
function findPartEnd(search: Search, start: number, limit: number): number {
  const { renderer, messages, index, text, options, specialTokens } = search;
  const short = tryRender(() =>
    renderer.render(messages.slice(0, index + 1), { ...options, addGenerationPrompt: false }),
  );
  const common = short === null ? 0 : longestCommonPrefix(text, short).length;
  if (common > start && common <= limit) {
    // Other tokens may begin with the same characters.
    const around = (token: string) => text.slice(common - token.length + 1, common + token.length - 1);
    const cut = specialTokens.find((token) => token !== "" && around(token).includes(token));
    return cut === undefined ? common : text.lastIndexOf(cut, common - 1);
  }
  const last = endOfLast(locate(search, index), limit);
  return last + (findEndToken(text.slice(last, limit), specialTokens)?.end ?? 0);
}

/** Returns the first of ascending positions in a range. */
export function firstBetween(positions: readonly number[], start: number, end: number): number | undefined {
  const first = positions.find((position) => position >= start);
  return first !== undefined && first < end ? first : undefined;
}

/** Returns the text with the positions of a message's characters; null if it has none. */
function locate({ renderer, messages, options }: Search, index: number): LocatedText | null {
  const located = tryCall(() => renderer.locate(messages, (_, i) => i === index, options));
  return located && located.positions.length > 0 ? located : null;
}

interface LocatedText {
  readonly text: string;
  readonly positions: readonly number[];
}

/** Returns the end of the last located character before a limit; 0 if there is none. */
function endOfLast(located: LocatedText | null, limit = Infinity): number {
  const last = located?.positions.findLast((position) => position < limit);
  return last === undefined ? 0 : last + String.fromCodePoint(located!.text.codePointAt(last)!).length;
}

/** Returns the start of a message, after the header that all of the assistant's messages have. */
function findStart(search: Search, { text, positions }: LocatedText, plain: SplitText | null): number {
  const { renderer, messages, index, options } = search;
  const render = (addGenerationPrompt: boolean) =>
    tryRender(() => renderer.render(messages.slice(0, index), { ...options, addGenerationPrompt }));
  const [prompt, history] = index === 0 ? [null, ""] : [render(true), render(false)];
  const gap = findGap(search, positions[0]);
  if (prompt !== null && prompt !== history) {
    if (text.startsWith(prompt)) return prompt.length;
    const start = alignHeader(text, gap, prompt, history);
    if (start !== undefined) return start;
  }
  if (plain === null) return positions[0];
  if (history === null || !text.startsWith(history) || !plain.before.startsWith(history))
    return alignEnd(text, gap, plain.before, 1) ?? positions[0];
  const header = longestCommonPrefix(text.slice(history.length), plain.before.slice(history.length));
  return Math.min(history.length + header.length, positions[0]);
}

/** Returns the range between the preceding message and a position in this one. */
export function findGap(search: Search, position: number): TextRange {
  const previous = search.index === 0 ? null : locate(search, search.index - 1);
  return [endOfLast(previous, position), position];
}

/**
 * Returns where in a range the header that the prompt of a message ends with ends; `history` is the
 * prompt without it.
 */
export function alignHeader(text: string, gap: TextRange, prompt: string, history: string | null): number | undefined {
  const header = history !== null && prompt.startsWith(history) ? prompt.slice(history.length) : prompt;
  return alignEnd(text, gap, prompt, header.length) ?? alignStart(text, gap, header);
}

/**
 * Returns where the beginning of a header ends that a message continues otherwise, as
 * `<think></think>` for the `<think>\n` of a prompt.
 */
function alignStart(text: string, [first, last]: TextRange, header: string): number | undefined {
  const gap = text.slice(first, last);
  for (let length = header.length; length > header.length / 2; length--) {
    const at = gap.lastIndexOf(header.slice(0, length));
    if (at >= 0) return first + at + length;
  }
  return undefined;
}

/**
 * Returns the position in a range where a text best ends as another; at least `minimum` characters
 * are the same.
 */
function alignEnd(text: string, [first, last]: TextRange, other: string, minimum: number): number | undefined {
  let best: number | undefined;
  let length = Math.max(0, minimum - 1);
  for (let end = last; end >= first; end--) {
    let same = 0;
    while (same < end && same < other.length && text[end - 1 - same] === other[other.length - 1 - same]) same++;
    if (same <= length) continue;
    best = end;
    length = same;
  }
  return best;
}

/** Finds a special token in a text: the first one, of which the longest, or the last one. */
export function findEndToken(
  text: string,
  specialTokens: readonly string[],
  which: "first" | "last" = "first",
): { readonly token: string; readonly end: number } | undefined {
  let found: { token: string; start: number; end: number } | undefined;
  for (const token of specialTokens) {
    const start = token === "" ? -1 : which === "first" ? text.indexOf(token) : text.lastIndexOf(token);
    if (start < 0) continue;
    const end = start + token.length;
    const isBetter =
      found === undefined ||
      (which === "first" ? start < found.start || (start === found.start && end > found.end) : end > found.end);
    if (isBetter) found = { token, start, end };
  }
  return found;
}

export function longestCommonPrefix(a: string, b: string): string {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return a.slice(0, length);
}

export function tryRender(render: () => RenderedText): string | null {
  return tryCall(render)?.text ?? null;
}

/** Some templates reject a part of a conversation that they accept as a whole. */
export function tryCall<Result>(call: () => Result): Result | null {
  try {
    return call();
  } catch (error) {
    if (error instanceof LlamaGymError && error.code === "TEMPLATE_FAILED") return null;
    throw error;
  }
}
