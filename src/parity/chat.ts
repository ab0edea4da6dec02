import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";

import { LlamaGymError } from "../errors.js";
import { readJson } from "../files/json.js";
import { AutoTokenizer } from "../text/auto.js";
import { ChatTemplate } from "../text/jinja/chat-template.js";
import { TemplateRefusal } from "../text/jinja/globals.js";
import type { ChatMessage } from "../text/messages.js";
import type { Tokenizer } from "../text/tokenizer.js";
import type { ParityOptions, Reporter } from "./report.js";

interface SmolRendering {
  readonly text: string;
  readonly ids: number[];
  readonly assistant_spans: [number, number][];
}

interface SmolFixture {
  readonly chat_template: string;
  readonly cases: {
    readonly messages: ChatMessage[];
    readonly with_generation_prompt: SmolRendering;
    readonly without_generation_prompt: SmolRendering;
  }[];
}

type TemplateCase = { readonly messages: ChatMessage[]; readonly text?: string; readonly error?: string } & Readonly<
  Record<string, unknown>
>;

type TemplatesFixture = Readonly<
  Record<string, { readonly template: string; readonly cases: TemplateCase[] } & Readonly<Record<string, unknown>>>
>;

interface TokenizerFixture {
  readonly vocab_size: number;
  readonly texts: {
    readonly text: string;
    readonly ids: number[];
    readonly ids_without_special: number[];
    readonly decoded: string;
    readonly decoded_skip_special: string;
  }[];
  readonly chats: {
    readonly messages: ChatMessage[];
    readonly add_generation_prompt: boolean;
    readonly text: string;
    readonly ids: number[];
  }[];
}

/** Chat templates, and a real model's token ids and assistant spans: `directory` is the fixtures' chat/ folder. */
export async function runChatParity(directory: string, report: Reporter, options: ParityOptions): Promise<void> {
  await part(report, join(directory, "templates.json"), runTemplates);
  await part(report, join(directory, "smol.json"), async (path) => {
    if (options.model === undefined) {
      report.skip("chat/smol", "needs a model folder or GGUF file: --model PATH");
      return;
    }
    await runSmol(path, report, await AutoTokenizer.fromPretrained(options.model));
  });
}

/** Encoding, decoding and chats of the tokenizer of each model folder: `directory` is the fixtures' models/ folder. */
export async function runTokenizerParity(directory: string, report: Reporter): Promise<void> {
  await part(report, join(directory, "tokenizer.json"), async (path) => {
    const fixture = await readFixture<TokenizerFixture>(path);
    const entries = await readdir(directory, { withFileTypes: true });
    for (const { name } of entries.filter((entry) => entry.isDirectory()).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (!existsSync(join(directory, name, "tokenizer.json"))) continue;
      await attempt(report, `models/${name} tokenizer`, async () => {
        compareTokenizer(name, fixture, await AutoTokenizer.fromPretrained(join(directory, name)), report);
      });
    }
  });
}

async function part(
  report: Reporter,
  path: string,
  run: (path: string, report: Reporter) => Promise<void>,
): Promise<void> {
  if (!existsSync(path)) {
    report.skip(path, "not there");
    return;
  }
  await attempt(report, path, () => run(path, report));
}

async function attempt(report: Reporter, name: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    report.error(name, error);
  }
}

async function readFixture<Fixture>(path: string): Promise<Fixture> {
  // Fixtures are written by the generator beside them; a wrong one shows as a failed case.
  return (await readJson(path)) as unknown as Fixture;
}

async function runTemplates(path: string, report: Reporter): Promise<void> {
  const fixture = await readFixture<TemplatesFixture>(path);
  for (const [name, { template, cases, ...tokens }] of Object.entries(fixture)) {
    await attempt(report, `chat/templates/${name}`, async () => {
      const compiled = new ChatTemplate(template);
      cases.forEach((entry, index) =>
        compareTemplate(`chat/templates/${name}/${index}`, compiled, tokens, entry, report),
      );
    });
  }
}

function compareTemplate(
  name: string,
  template: ChatTemplate,
  tokens: Readonly<Record<string, unknown>>,
  { text, error, ...variables }: TemplateCase,
  report: Reporter,
): void {
  const outcome = renderOutcome(template, { tools: null, documents: null, ...tokens, ...variables });
  if (error === undefined) {
    report.exact(name, outcome.text === text, difference(outcome.text ?? outcome.error, text));
    return;
  }
  // Only what the template says itself with raise_exception has a fixed wording.
  const raised = template.source.includes(error) || outcome.refused;
  const ok = outcome.error !== undefined && (!raised || outcome.error === error);
  report.exact(name, ok, difference(outcome.error ?? outcome.text, error));
}

function renderOutcome(template: ChatTemplate, variables: Readonly<Record<string, unknown>>) {
  try {
    return { text: template.render({ variables }), refused: false };
  } catch (error) {
    if (!(error instanceof LlamaGymError)) throw error;
    const message = error.cause instanceof Error ? error.cause.message : error.message;
    return { error: message, refused: error.cause instanceof TemplateRefusal };
  }
}

async function runSmol(path: string, report: Reporter, tokenizer: Tokenizer): Promise<void> {
  const fixture = await readFixture<SmolFixture>(path);
  fixture.cases.forEach(({ messages, with_generation_prompt, without_generation_prompt }, index) => {
    for (const [addGenerationPrompt, expected] of [
      [true, with_generation_prompt],
      [false, without_generation_prompt],
    ] as const) {
      const name = `chat/smol/${index}${addGenerationPrompt ? " with prompt" : ""}`;
      const actual = tokenizer.encodeChat(messages, { addGenerationPrompt, chatTemplate: fixture.chat_template });
      report.exact(`${name} text`, actual.text === expected.text, difference(actual.text, expected.text));
      same(report, `${name} ids`, actual.ids, expected.ids);
      same(report, `${name} assistant spans`, actual.assistantSpans, expected.assistant_spans);
    }
  });
}

function compareTokenizer(folder: string, fixture: TokenizerFixture, tokenizer: Tokenizer, report: Reporter): void {
  const prefix = `models/${folder} tokenizer`;
  same(report, `${prefix} size`, tokenizer.vocabSize, fixture.vocab_size);
  fixture.texts.forEach((expected, index) => {
    const ids = tokenizer.encode(expected.text);
    const bare = tokenizer.encode(expected.text, { addSpecialTokens: false });
    const decoded = tokenizer.decode(expected.ids);
    const skipped = tokenizer.decode(expected.ids, { skipSpecialTokens: true });
    same(
      report,
      `${prefix} text ${index}`,
      [ids, bare, decoded, skipped],
      [expected.ids, expected.ids_without_special, expected.decoded, expected.decoded_skip_special],
    );
  });
  fixture.chats.forEach(({ messages, add_generation_prompt, text, ids }, index) => {
    const actual = tokenizer.encodeChat(messages, { addGenerationPrompt: add_generation_prompt });
    same(report, `${prefix} chat ${index}`, [actual.text, actual.ids], [text, ids]);
  });
}

function same(report: Reporter, name: string, actual: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  report.exact(name, a === b, difference(a, b));
}

/** Where two texts part, for a line of the report. */
function difference(actual: string | undefined, expected: string | undefined): string {
  if (actual === undefined || expected === undefined) return `(${String(actual)} for ${String(expected)})`;
  let start = 0;
  while (start < actual.length && actual[start] === expected[start]) start++;
  const excerpt = (text: string) => JSON.stringify(text.slice(Math.max(0, start - 10), start + 30));
  return `at ${start}: ${excerpt(actual)} for ${excerpt(expected)}`;
}
