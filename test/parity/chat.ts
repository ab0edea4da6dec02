import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";

import { LlamaGymError } from "../../src/core/errors.js";
import { readJson } from "../../src/core/files/json-file.js";
import { AutoTokenizer } from "../../src/models/text/auto-tokenizer.js";
import { ChatTemplate } from "../../src/models/text/jinja/chat-template.js";
import { TemplateError } from "../../src/models/text/jinja/template-scope.js";
import type { ChatMessage } from "../../src/models/text/chat-messages.js";
import type { Tokenizer } from "../../src/models/text/tokenizer.js";
import type { ParityOptions, ParityReport } from "./parity-report.js";

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

/**
 * Chat templates, and a real model's token ids and assistant spans: `directory` is the fixtures'
 * chat/ folder.
 */
export async function runChatParity(directory: string, report: ParityReport, options: ParityOptions): Promise<void> {
  await runFixture(report, join(directory, "templates.json"), runTemplates);
  await runFixture(report, join(directory, "smol.json"), async (path) => {
    if (options.model === undefined) {
      report.skip("chat/smol", "needs a model folder or GGUF file: --model PATH");
      return;
    }
    await runSmol(path, report, await AutoTokenizer.fromPretrained(options.model));
  });
}

/**
 * Encoding, decoding and chats of the tokenizer of each model folder: `directory` is the fixtures'
 * models/ folder.
 */
export async function runTokenizerParity(directory: string, report: ParityReport): Promise<void> {
  await runFixture(report, join(directory, "tokenizer.json"), async (path) => {
    const fixture = await readFixture<TokenizerFixture>(path);
    const entries = await readdir(directory, { withFileTypes: true });
    for (const { name } of entries.filter((entry) => entry.isDirectory()).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (!existsSync(join(directory, name, "tokenizer.json"))) continue;
      await runGuarded(report, `models/${name} tokenizer`, async () => {
        compareTokenizer(name, fixture, await AutoTokenizer.fromPretrained(join(directory, name)), report);
      });
    }
  });
}

async function runFixture(
  report: ParityReport,
  path: string,
  run: (path: string, report: ParityReport) => Promise<void>,
): Promise<void> {
  if (!existsSync(path)) {
    report.skip(path, "not there");
    return;
  }
  await runGuarded(report, path, () => run(path, report));
}

async function runGuarded(report: ParityReport, name: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    report.error(name, error);
  }
}

async function readFixture<Fixture>(path: string): Promise<Fixture> {
  // Fixtures are written by the generator next to them; a wrong one shows as a failed case.
  return (await readJson(path)) as unknown as Fixture;
}

async function runTemplates(path: string, report: ParityReport): Promise<void> {
  const fixture = await readFixture<TemplatesFixture>(path);
  for (const [name, { template, cases, ...tokens }] of Object.entries(fixture)) {
    await runGuarded(report, `chat/templates/${name}`, async () => {
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
  report: ParityReport,
): void {
  const outcome = tryRender(template, { tools: null, documents: null, ...tokens, ...variables });
  if (error === undefined) {
    report.checkEqual(name, outcome.text === text, describeDifference(outcome.text ?? outcome.error, text));
    return;
  }
  // Only what the template says itself with raise_exception has a fixed wording.
  const isRaisedByTemplate = template.source.includes(error) || outcome.refused;
  const ok = outcome.error !== undefined && (!isRaisedByTemplate || outcome.error === error);
  report.checkEqual(name, ok, describeDifference(outcome.error ?? outcome.text, error));
}

function tryRender(template: ChatTemplate, variables: Readonly<Record<string, unknown>>) {
  try {
    return { text: template.render({ variables }), refused: false };
  } catch (error) {
    if (!(error instanceof LlamaGymError)) throw error;
    const message = error.cause instanceof Error ? error.cause.message : error.message;
    return { error: message, refused: error.cause instanceof TemplateError };
  }
}

async function runSmol(path: string, report: ParityReport, tokenizer: Tokenizer): Promise<void> {
  const fixture = await readFixture<SmolFixture>(path);
  fixture.cases.forEach(({ messages, with_generation_prompt, without_generation_prompt }, index) => {
    for (const [addGenerationPrompt, expected] of [
      [true, with_generation_prompt],
      [false, without_generation_prompt],
    ] as const) {
      const name = `chat/smol/${index}${addGenerationPrompt ? " with prompt" : ""}`;
      const actual = tokenizer.encodeChat(messages, { addGenerationPrompt, chatTemplate: fixture.chat_template });
      report.checkEqual(`${name} text`, actual.text === expected.text, describeDifference(actual.text, expected.text));
      checkSame(report, `${name} ids`, actual.ids, expected.ids);
      checkSame(report, `${name} assistant spans`, actual.assistantSpans, expected.assistant_spans);
    }
  });
}

function compareTokenizer(folder: string, fixture: TokenizerFixture, tokenizer: Tokenizer, report: ParityReport): void {
  const prefix = `models/${folder} tokenizer`;
  checkSame(report, `${prefix} size`, tokenizer.vocabSize, fixture.vocab_size);
  fixture.texts.forEach((expected, index) => {
    const ids = tokenizer.encode(expected.text);
    const bare = tokenizer.encode(expected.text, { addSpecialTokens: false });
    const decoded = tokenizer.decode(expected.ids);
    const skipped = tokenizer.decode(expected.ids, { skipSpecialTokens: true });
    checkSame(
      report,
      `${prefix} text ${index}`,
      [ids, bare, decoded, skipped],
      [expected.ids, expected.ids_without_special, expected.decoded, expected.decoded_skip_special],
    );
  });
  fixture.chats.forEach(({ messages, add_generation_prompt, text, ids }, index) => {
    const actual = tokenizer.encodeChat(messages, { addGenerationPrompt: add_generation_prompt });
    checkSame(report, `${prefix} chat ${index}`, [actual.text, actual.ids], [text, ids]);
  });
}

function checkSame(report: ParityReport, name: string, actual: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  report.checkEqual(name, a === b, describeDifference(a, b));
}

/** Where two texts part, for a line of the report. */
function describeDifference(actual: string | undefined, expected: string | undefined): string {
  if (actual === undefined || expected === undefined) return `(${String(actual)} for ${String(expected)})`;
  let start = 0;
  while (start < actual.length && actual[start] === expected[start]) start++;
  const excerpt = (text: string) => JSON.stringify(text.slice(Math.max(0, start - 10), start + 30));
  return `at ${start}: ${excerpt(actual)} for ${excerpt(expected)}`;
}
