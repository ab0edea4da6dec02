import { LlamaGymError } from "../../../core/errors.js";

// Chat templates come with models and are untrusted. The published ones need up to 60 steps per
// message, and read each character up to four times. The limits admit 50,000 messages and 7 million
// characters, and keep the worst rendering within seconds and 1 GB.

/** Maximum characters of a template's source; published templates have up to 35,000. */
export const MAX_SOURCE_LENGTH = 131_072;
/** Maximum evaluated statements, expressions and comparisons. */
const MAX_STEPS = 3_000_000;
/**
 * Maximum nesting of evaluated expressions, blocks and macro calls; the call stack allows some
 * thousand.
 */
export const MAX_DEPTH = 500;
/**
 * Maximum characters of one string and of the output: more than a context of two million tokens.
 */
const MAX_TEXT_LENGTH = 10_000_000;
/** Maximum characters that filters, methods and comparisons read and write in all. */
const MAX_TEXT_WORK = 30_000_000;
/** Maximum list items and dictionary entries that are created or scanned in all. */
const MAX_ITEMS = 10_000_000;

interface Budget {
  steps: number;
  text: number;
  items: number;
}

const createBudget = (): Budget => ({ steps: MAX_STEPS, text: MAX_TEXT_WORK, items: MAX_ITEMS });

/** Rendering is synchronous, so one budget is in use at a time. */
let budget = createBudget();

/** Calls a function with its own budget. */
export function withRenderBudget<Result>(render: () => Result): Result {
  const outer = budget;
  budget = createBudget();
  try {
    return render();
  } finally {
    budget = outer;
  }
}

/** @throws TEMPLATE_LIMIT beyond MAX_STEPS. */
export function spendSteps(count: number): void {
  budget.steps -= count;
  if (budget.steps < 0) throw limitError(MAX_STEPS, "evaluation steps");
}

/**
 * Accounts for text that is read or created. @throws TEMPLATE_LIMIT beyond MAX_TEXT_LENGTH and
 * MAX_TEXT_WORK.
 */
export function spendText(length: number): void {
  checkTextLength(length);
  budget.text -= length;
  if (budget.text < 0) throw limitError(MAX_TEXT_WORK, "characters that are read and written");
}

/** @throws TEMPLATE_LIMIT beyond MAX_ITEMS. */
export function spendItems(count: number): void {
  budget.items -= count;
  if (budget.items < 0) throw limitError(MAX_ITEMS, "list items");
}

/** @throws TEMPLATE_LIMIT for a string above MAX_TEXT_LENGTH. */
export function checkTextLength(length: number): void {
  if (length > MAX_TEXT_LENGTH) throw limitError(MAX_TEXT_LENGTH, "characters of one string");
}

/** Concatenates strings in constant time and memory. */
export function concatenate(left: string, right: string): string {
  checkTextLength(left.length + right.length);
  return left + right;
}

/** Joins texts. @throws TEMPLATE_LIMIT before a string above MAX_TEXT_LENGTH exists. */
export function joinTexts(parts: readonly string[], separator: string): string {
  let length = separator.length * Math.max(0, parts.length - 1);
  for (const part of parts) length += part.length;
  spendText(length);
  return parts.join(separator);
}

/** Repeats a text. @throws as `joinTexts`. */
export function repeatText(text: string, times: number): string {
  const count = Math.max(0, Math.trunc(times));
  spendText(text.length * count);
  return text.repeat(count);
}

/** Creates TEMPLATE_LIMIT. */
export function limitError(limit: number, unit: string, cause?: unknown): LlamaGymError {
  return new LlamaGymError(
    "TEMPLATE_LIMIT",
    `The chat template exceeds the limit of ${limit.toLocaleString("en-US")} ${unit}. ` +
      "Shorten the conversation, or pass another template as `chatTemplate`.",
    { cause },
  );
}

/** @throws TEMPLATE_LIMIT for a source that is too long to parse. */
export function checkSource(source: string): void {
  if (source.length > MAX_SOURCE_LENGTH) throw limitError(MAX_SOURCE_LENGTH, "characters of source text");
}
