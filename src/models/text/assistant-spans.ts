import { LlamaGymError } from "../../core/errors.js";
import type { ChatRenderer, RenderOptions } from "./chat-renderer.js";
import { collectTexts, requireNoncharacters } from "./content-marker.js";
import type { ChatMessage } from "./chat-messages.js";
import type { RenderedText } from "./rendered-text.js";
import type { Offset } from "./tokenization/align-tokens.js";

/** A range [start, end) of token positions. */
export type AssistantSpan = readonly [start: number, end: number];

/** A range [start, end) of UTF-16 positions in a text. */
type TextRange = readonly [start: number, end: number];

/**
 * Finds the assistant's parts of a rendered conversation: the output of {% generation %} blocks if
 * the template has them, else each assistant message from the end of its header through its end
 * token.
 * Without such blocks, a message is located by rendering the conversation again with different
 * content: what precedes and follows is the template's. The header is what add_generation_prompt
 * prints. `specialTokens` are the contents of the tokenizer's special tokens.
 */
export function findAssistantRanges(
  renderer: ChatRenderer,
  messages: readonly ChatMessage[],
  options: RenderOptions,
  specialTokens: readonly string[],
): { rendered: RenderedText; ranges: TextRange[] } {
  const { generated, ...rendered } = renderer.renderMarked(messages, options);
  const { text } = rendered;
  if (renderer.marksGeneration(options)) return { rendered, ranges: generated.filter(([start, end]) => end > start) };
  const ranges: TextRange[] = [];
  messages.forEach((message, index) => {
    if (message.role !== "assistant") return;
    const span = findContent(renderer, messages, index, text, options);
    if (!span) return;
    const start = findHeaderEnd(renderer, messages, index, text, span.start, options);
    ranges.push([Math.min(start, span.end), span.end + getEndTokenLength(span.closing, specialTokens)]);
  });
  return { rendered, ranges };
}

/** Returns the tokens overlapping a range. A token that joins header and content belongs to the content. */
export function toTokenSpans(ranges: readonly TextRange[], offsets: readonly Offset[]): AssistantSpan[] {
  const spans: AssistantSpan[] = [];
  let position = 0;
  for (const [start, end] of ranges) {
    while (position < offsets.length && offsets[position][1] <= start) position++;
    const first = position;
    while (position < offsets.length && offsets[position][0] < end) position++;
    if (position > first) spans.push([first, position]);
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
): ContentSpan | null {
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
  if (!whole || !text.startsWith(whole.before) || !text.endsWith(whole.after)) return null;
  const start = whole.before.length;
  const end = text.length - whole.after.length;
  if (end < start) return null;
  return { start, end, closing: longestCommonPrefix(whole.after, truncated?.after ?? "") };
}

function splitAt(text: string | null, placeholder: string): { before: string; after: string } | null {
  const index = text?.indexOf(placeholder) ?? -1;
  return text === null || index < 0
    ? null
    : { before: text.slice(0, index), after: text.slice(index + placeholder.length) };
}

/** Returns the end of an assistant message's header: the text that the generation prompt prints. */
function findHeaderEnd(
  renderer: ChatRenderer,
  messages: readonly ChatMessage[],
  index: number,
  text: string,
  content: number,
  options: RenderOptions,
): number {
  const before = messages.slice(0, index);
  const prompt = tryRender(() => renderer.render(before, { ...options, addGenerationPrompt: true }));
  if (prompt === null || !text.startsWith(prompt)) return content;
  const withoutHeader = tryRender(() => renderer.render(before, { ...options, addGenerationPrompt: false }));
  // Without a generation prompt the header cannot be told from the content; whitespace alone is not a header.
  const hasHeader = prompt !== withoutHeader || text.slice(prompt.length, content).trim() === "";
  return hasHeader ? prompt.length : content;
}

/**
 * Returns the length of the end token within the closing text: through the first special token, or
 * all but trailing whitespace.
 */
function getEndTokenLength(closing: string, specialTokens: readonly string[]): number {
  let end = Infinity;
  let start = Infinity;
  for (const token of specialTokens) {
    const index = closing.indexOf(token);
    if (token !== "" && index >= 0 && (index < start || (index === start && index + token.length > end))) {
      start = index;
      end = index + token.length;
    }
  }
  return end === Infinity ? closing.trimEnd().length : end;
}

function longestCommonPrefix(a: string, b: string): string {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return a.slice(0, length);
}

/** Some templates reject a part of a conversation that they accept as a whole. */
function tryRender(render: () => RenderedText): string | null {
  try {
    return render().text;
  } catch (error) {
    if (error instanceof LlamaGymError && error.code === "TEMPLATE_FAILED") return null;
    throw error;
  }
}
