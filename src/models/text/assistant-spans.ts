import { asJsonObject } from "../../core/json.js";
import type { ChatRenderer, RenderOptions } from "./chat-renderer.js";
import { collectTexts, requireNoncharacters } from "./content-marker.js";
import type { ChatMessage } from "./chat-messages.js";
import {
  type Search,
  type SplitText,
  type TextRange,
  alignHeader,
  findEndToken,
  findGap,
  firstBetween,
  followMessage,
  longestCommonPrefix,
  splitRange,
  tryCall,
  tryRender,
} from "./follow-message.js";
import type { RenderedText } from "./rendered-text.js";
import type { Offset } from "./tokenization/align-tokens.js";

/** A range [start, end) of token positions. */
export type AssistantSpan = readonly [start: number, end: number];

/** A rendered conversation with the assistant's parts. */
interface AssistantRanges {
  readonly rendered: RenderedText;
  readonly ranges: readonly TextRange[];
  /**
   * The message of each range; undefined where a range of {% generation %} has characters of no
   * message.
   */
  readonly messages: readonly (number | undefined)[];
  /** Assistant messages with text that have no range. */
  readonly missing: readonly number[];
}

/**
 * Finds the assistant's parts of a rendered conversation: the output of {% generation %} blocks if
 * the template has them, else each assistant message from the end of its header through its end
 * token.
 * Without such blocks, a message is located by rendering the conversation again with different
 * content: what precedes and follows is the template's. The header is what add_generation_prompt
 * prints. Where the template writes other content otherwise, as reasoning and tool calls, the
 * message's characters are followed through the rendering. `specialTokens` are the contents of the
 * tokenizer's special tokens.
 */
export function findAssistantRanges(
  renderer: ChatRenderer,
  messages: readonly ChatMessage[],
  options: RenderOptions,
  specialTokens: readonly string[],
): AssistantRanges {
  const { generated, ...rendered } = renderer.renderMarked(messages, options);
  const { text } = rendered;
  const assistants = messages.flatMap(({ role }, index) => (role === "assistant" ? [index] : []));
  if (renderer.marksGeneration(options)) {
    const ranges = generated.filter(([start, end]) => end > start);
    const isOneEach = ranges.length === assistants.length;
    const { owners, unprinted } = isOneEach
      ? { owners: assistants, unprinted: [] }
      : attribute(renderer, messages, assistants, ranges, options);
    // A template may mark some answers only, but no answer by its end token alone.
    const isEmpty = ([start, end]: TextRange) => removeTokens(text.slice(start, end), specialTokens).trim() === "";
    const empty = owners.filter((_, i) => isEmpty(ranges[i]));
    const isMissing = (index: number) => ranges.length === 0 || [...empty, ...unprinted].includes(index);
    const missing = assistants.filter(
      (index) =>
        hasText(messages[index]) && (isMissing(index) || lacksCalls(messages[index], index, text, ranges, owners)),
    );
    return { rendered, ranges, messages: owners, missing };
  }
  const others = locateOthers(renderer, messages, text, options);
  const found = assistants.flatMap((index) => {
    const search = { renderer, messages, index, text, options, specialTokens, others };
    const range = findMessage(search);
    return range ? splitRange(search, range).map((part) => ({ range: part, index })) : [];
  });
  const located = found.map(({ index }) => index);
  const ranges = found.map(({ range }) => range);
  const missing = assistants.filter(
    (index) =>
      hasText(messages[index]) &&
      (!located.includes(index) || lacksCalls(messages[index], index, text, ranges, located)),
  );
  return { rendered, ranges, messages: located, missing };
}

/** Returns the positions of the characters of messages that are not the assistant's. */
function locateOthers(
  renderer: ChatRenderer,
  messages: readonly ChatMessage[],
  text: string,
  options: RenderOptions,
): readonly number[] {
  const located = tryCall(() => renderer.locate(messages, (_, index) => messages[index].role !== "assistant", options));
  return located?.text === text ? located.positions : [];
}

/**
 * Whether the ranges of a message lack one of its tool calls, which a template without tools leaves
 * out.
 */
function lacksCalls(
  { tool_calls: calls, ...others }: ChatMessage,
  index: number,
  text: string,
  ranges: readonly TextRange[],
  owners: readonly (number | undefined)[],
): boolean {
  const removeOthers = (range: string) =>
    collectTexts(others).reduce((rest, part) => rest.replaceAll(part.trim(), ""), range);
  const own = ranges.filter((_, i) => owners[i] === index).map(([start, end]) => removeOthers(text.slice(start, end)));
  if (!Array.isArray(calls) || own.length === 0) return false;
  return calls.some((call: unknown) => {
    const callee = asJsonObject(asJsonObject(call)?.function ?? call);
    const texts = collectTexts([callee?.name, callee?.arguments]).filter((part) => part.trim() !== "");
    return texts.length > 0 && !own.some((range) => texts.some((part) => range.includes(part)));
  });
}

const removeTokens = (text: string, tokens: readonly string[]) =>
  tokens.reduce((rest, token) => (token === "" ? rest : rest.replaceAll(token, "")), text);

/**
 * Whether a message with tool calls ends before a position: a template may leave out the results of
 * calls with the calls.
 */
function endsBefore({ renderer, messages, index, text, options }: Search, end: number): boolean {
  const { tool_calls: calls } = messages[index];
  if (!Array.isArray(calls) || calls.length === 0) return false;
  const through = messages.slice(0, index + 1);
  const short = tryRender(() => renderer.render(through, { ...options, addGenerationPrompt: false }))?.trimEnd();
  return short !== undefined && short.length < end && text.startsWith(short);
}

/** Whether a message has more than a role and empty fields. */
function hasText(message: ChatMessage): boolean {
  return Object.entries(message).some(
    ([name, value]) => name !== "role" && collectTexts(value).some((text) => text.trim() !== ""),
  );
}

/**
 * Returns the message whose characters each range has, and the messages that have no characters
 * anywhere in the text.
 */
function attribute(
  renderer: ChatRenderer,
  messages: readonly ChatMessage[],
  assistants: readonly number[],
  ranges: readonly TextRange[],
  options: RenderOptions,
): { readonly owners: (number | undefined)[]; readonly unprinted: readonly number[] } {
  const located = assistants.map((index) => ({ index, ...renderer.locate(messages, (_, i) => i === index, options) }));
  const owners = ranges.map(
    ([start, end]) => located.find(({ positions }) => positions.some((at) => at >= start && at < end))?.index,
  );
  return { owners, unprinted: located.filter(({ positions }) => positions.length === 0).map(({ index }) => index) };
}

function findMessage(search: Search): TextRange | undefined {
  const { renderer, messages, index, text, options, specialTokens } = search;
  const content = findContent(renderer, messages, index, text, options);
  const isShown =
    content.span &&
    !endsBefore(search, content.span.end) &&
    firstBetween(search.others, content.span.start, content.span.end) === undefined &&
    (!hasText(messages[index]) || text.slice(content.span.start, content.span.end).trim() !== "");
  if (!content.span || !isShown) return followMessage(search, content.truncated);
  const { start: contentStart, end, closing } = content.span;
  const start = findHeaderEnd(search, contentStart);
  return [Math.min(start, end), end + (findEndToken(closing, specialTokens)?.end ?? closing.trimEnd().length)];
}

/**
 * Returns the tokens overlapping each range. A token that joins header and content belongs to the
 * content.
 */
export function toTokenSpans(ranges: readonly TextRange[], offsets: readonly Offset[]): AssistantSpan[] {
  const spans: AssistantSpan[] = [];
  let position = 0;
  for (const [start, end] of ranges) {
    while (position < offsets.length && offsets[position][1] <= start) position++;
    const first = position;
    while (position < offsets.length && offsets[position][0] < end) position++;
    spans.push([first, position]);
  }
  return spans;
}

interface ContentSpan {
  readonly start: number;
  readonly end: number;
  /** Text the template appends to the content as part of the message. */
  readonly closing: string;
}

function findContent(
  renderer: ChatRenderer,
  messages: readonly ChatMessage[],
  index: number,
  text: string,
  options: RenderOptions,
): { readonly span?: ContentSpan; readonly truncated: SplitText | null } {
  const [placeholder] = requireNoncharacters([text, ...collectTexts(messages)], 1);
  const content = Array.isArray(messages[index].content) ? [{ type: "text", text: placeholder }] : placeholder;
  const withPlaceholder = messages.map((message, i) => (i === index ? { role: message.role, content } : message));
  const whole = splitAt(
    tryRender(() => renderer.render(withPlaceholder, options)),
    placeholder,
  );
  const truncated = splitAt(
    tryRender(() => renderer.render(withPlaceholder.slice(0, index + 1), { ...options, addGenerationPrompt: false })),
    placeholder,
  );
  if (!whole || !text.startsWith(whole.before) || !text.endsWith(whole.after)) return { truncated };
  const start = whole.before.length;
  const end = text.length - whole.after.length;
  if (end < start) return { truncated };
  return { span: { start, end, closing: longestCommonPrefix(whole.after, truncated?.after ?? "") }, truncated };
}

function splitAt(text: string | null, placeholder: string): SplitText | null {
  const index = text?.indexOf(placeholder) ?? -1;
  return text === null || index < 0
    ? null
    : { before: text.slice(0, index), after: text.slice(index + placeholder.length) };
}

/** Returns the end of an assistant message's header: the text that the generation prompt prints. */
function findHeaderEnd(search: Search, content: number): number {
  const { renderer, messages, index, text, options } = search;
  const before = messages.slice(0, index);
  const prompt = tryRender(() => renderer.render(before, { ...options, addGenerationPrompt: true }));
  if (prompt === null) return content;
  const withoutHeader = tryRender(() => renderer.render(before, { ...options, addGenerationPrompt: false }));
  // A template may write earlier messages otherwise once an answer follows.
  if (!text.startsWith(prompt))
    return prompt === withoutHeader
      ? content
      : (alignHeader(text, findGap(search, content), prompt, withoutHeader) ?? content);
  // Without a generation prompt the header cannot be told from the content; whitespace alone is not
  // a header.
  const hasHeader = prompt !== withoutHeader || text.slice(prompt.length, content).trim() === "";
  return hasHeader ? prompt.length : content;
}
