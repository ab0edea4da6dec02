import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { readTextFixture } from "../../../test/support/text.js";
import { AutoTokenizer, Tokenizer, type ChatMessage } from "../../models/text/index.js";
import { readExample } from "./read-examples.js";
import { encodeExample, type ChatExample } from "./sft-example.js";

type Spans = readonly (readonly [start: number, end: number])[];

/**
 * What TRL's trainer makes of a row: its number of tokens and the trained ones, or an error of the
 * template.
 */
interface TrlCase {
  readonly length?: number;
  /** With assistant_only_loss, and completion_only_loss for prompts with completions. */
  readonly trained?: Spans;
  /** With completion_only_loss alone. */
  readonly completion?: Spans;
  readonly error?: string;
}

const { rows, templates, specialTokens, date } = readTextFixture("sft-masks.json") as {
  readonly rows: Readonly<Record<string, Record<string, unknown>>>;
  readonly templates: Readonly<Record<string, { readonly template: string; readonly cases: readonly TrlCase[] }>>;
  readonly specialTokens: readonly string[];
  readonly date: string;
};

let plain: Tokenizer;
beforeAll(async () => {
  // Some templates print the date.
  vi.useFakeTimers({ now: new Date(`${date}T12:00:00`), toFake: ["Date"] });
  plain = await AutoTokenizer.fromPretrained(
    fileURLToPath(new URL("../../../test/fixtures/text/model", import.meta.url)),
  );
});
afterAll(() => vi.useRealTimers());

/** Returns the tokenizer with a template, whose marks are special tokens. */
function makeTokenizer(chatTemplate: string): Tokenizer {
  const tokenizerJson = plain.files.tokenizerJson as { readonly added_tokens: readonly object[] };
  const added = specialTokens.map((content, i) => ({ id: plain.vocabSize + i, content, special: true }));
  const json = { ...tokenizerJson, added_tokens: [...tokenizerJson.added_tokens, ...added] };
  return new Tokenizer({ ...plain.files, tokenizerJson: json, chatTemplate });
}

/** Returns the length of a row in tokens, and the trained ones. @throws as `encodeExample`. */
function encode(row: Record<string, unknown>, tokenizer: Tokenizer) {
  const { tokens, lossMask } = encodeExample(readExample(row, "chat").example, () => tokenizer);
  const mask = Array.from(lossMask, (bit) => (bit === 0 ? "0" : "1")).join("");
  const trained: Spans = Array.from(mask.matchAll(/1+/g), ({ 0: run, index }) => [index, index + run.length] as const);
  return { tokens, trained };
}

/** A template as most are published: without {% generation %}. */
const withoutBlocks = (template: string) =>
  template.replace(
    /\{%(-?)\s*(end)?generation\s*(-?)%\}/g,
    (_, left: string, end: string | undefined, right: string) =>
      `{%${left} ${end === undefined ? "if true" : "endif"} ${right}%}`,
  );

/** Whether a row has calls that a template leaves out, of which TRL trains the end token alone. */
const leavesOutCalls = (row: Record<string, unknown>, template: string) =>
  !template.includes("tool_calls") && JSON.stringify(row).includes("tool_calls");

/** Returns the ends of the prompts of the answers that are trained, in which their headers are. */
function renderHeaders(row: Record<string, unknown>, tokenizer: Tokenizer): string[] {
  const { tools, variables } = readExample(row, "chat").example as ChatExample;
  const { messages, prompt, completion } = row as Readonly<Record<string, readonly ChatMessage[] | undefined>>;
  const all = messages ?? [...prompt!, ...completion!];
  return all.flatMap(({ role }, i) =>
    role === "assistant" && i >= (prompt?.length ?? 0)
      ? [tokenizer.applyChatTemplate(all.slice(0, i), { tools, variables, addGenerationPrompt: true }).slice(-40)]
      : [],
  );
}

describe.each(Object.entries(templates))("the template of %s", (_, { template, cases }) => {
  const all = Object.entries(rows).map(([name, row], i) => ({ name, row, ...cases[i] }));
  const isRefused = ({ row, error }: (typeof all)[number]) => error !== undefined || leavesOutCalls(row, template);
  const trainedRows = all.filter((each) => !isRefused(each)).map((each) => [each.name, each] as const);
  const refusedRows = all.filter(isRefused).map((each) => [each.name, each] as const);

  it.each(trainedRows)("trains the tokens that TRL trains: %s", (_name, { row, length, trained, completion }) => {
    const found = encode(row, makeTokenizer(template));
    expect({ length: found.tokens.length, trained: found.trained }).toEqual({ length, trained });
    // What completion_only_loss alone trains in addition is no answer.
    const isOfCompletion = ([start, end]: Spans[number]) =>
      completion === undefined || completion.some(([first, last]) => first <= start && end <= last);
    expect(found.trained.every(isOfCompletion)).toBe(true);
  });

  it.each(trainedRows)("trains the same answers without blocks: %s", (_name, { row }) => {
    const [marked, unmarked] = [template, withoutBlocks(template)].map(makeTokenizer);
    const [expected, found] = [marked, unmarked].map((tokenizer) => encode(row, tokenizer));
    expect(found.tokens).toEqual(expected.tokens);
    expect(found.trained).toHaveLength(expected.trained.length);
    const headers = renderHeaders(row, unmarked);
    found.trained.forEach(([start, end], i) => {
      const [first, last] = expected.trained[i];
      expect([first <= start, end <= last]).toEqual([true, true]);
      const textOf = (from: number, to: number) => unmarked.decodeContinuation(found.tokens.slice(from, to));
      // Blocks may begin in the header, which is part of the prompt, and have a line break or
      // another end token after the end token.
      expect(headers[i]).toContain(textOf(first, start));
      expect(textOf(end, last)).toMatch(/^(\n?(<\|im_end\|>)?)$/);
    });
  });

  it.runIf(refusedRows.length > 0).each(refusedRows)("refuses %s, with or without blocks", (_name, { row, error }) => {
    const reason = error ?? /is not found in the text that the chat template writes/;
    for (const source of [template, withoutBlocks(template)])
      expect(() => encode(row, makeTokenizer(source))).toThrow(reason);
  });
});
