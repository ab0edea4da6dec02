import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";

import { readJson } from "../../src/core/files/json-file.js";
import { type ChatMessage, toTemplateMessages } from "../../src/models/text/chat-messages.js";
import { ChatTemplate } from "../../src/models/text/jinja/chat-template.js";
import { UnsupportedTemplate } from "../../src/models/text/jinja/unsupported-template.js";
import type { ParityReport } from "./parity-report.js";

/** jinja2's outcome: a text, or an error of any wording. */
interface Expected {
  readonly text?: string;
  readonly error?: unknown;
}

interface ConstructsFixture {
  readonly date: string;
  readonly rows: readonly ({ readonly template: string; readonly vars: Variables } & Expected)[];
}

interface TemplatesFixture {
  readonly date: string;
  readonly conversations: Readonly<Record<string, Variables>>;
  readonly expected: Readonly<Record<string, Readonly<Record<string, string | Expected>>>>;
}

type Variables = Readonly<Record<string, unknown>>;

const GLOBALS: Variables = {
  tools: null,
  documents: null,
  add_generation_prompt: false,
  bos_token: "<s>",
  eos_token: "</s>",
};

const MESSAGES = [
  { role: "system", content: "S" },
  { role: "user", content: "U" },
  { role: "assistant", content: "A" },
];

/** Jinja constructs and published chat templates: `directory` is the fixtures' jinja/ folder. */
export async function runJinjaParity(directory: string, report: ParityReport): Promise<void> {
  // Fixtures are written by the generator next to them; a wrong one shows as a failed case.
  const constructs = (await readJson(join(directory, "constructs.json"))) as unknown as ConstructsFixture;
  for (const { template, vars, ...expected } of constructs.rows)
    compare(
      report,
      `jinja/constructs ${JSON.stringify(template)}`,
      template,
      { ...GLOBALS, messages: MESSAGES, ...vars },
      constructs.date,
      expected,
    );
  const published = (await readJson(join(directory, "templates.json"))) as unknown as TemplatesFixture;
  for (const name of (await readdir(join(directory, "templates"))).sort()) {
    const source = await readFile(join(directory, "templates", name), "utf8");
    for (const [conversation, outcome] of Object.entries(published.expected[name] ?? {})) {
      const expected = typeof outcome === "string" ? { text: outcome } : outcome;
      const { messages, ...variables } = published.conversations[conversation];
      const prepared = toTemplateMessages(messages as ChatMessage[]);
      compare(
        report,
        `jinja/templates ${name} ${conversation}`,
        source,
        { ...GLOBALS, ...variables, messages: prepared },
        published.date,
        expected,
      );
    }
  }
}

function compare(
  report: ParityReport,
  name: string,
  source: string,
  variables: Variables,
  date: string,
  expected: Expected,
): void {
  let outcome: Expected;
  try {
    outcome = { text: new ChatTemplate(source).render({ variables, now: new Date(`${date}T12:00:00`) }) };
  } catch (error) {
    if (error instanceof Error && error.cause instanceof UnsupportedTemplate)
      return report.skip(name, `refused before rendering: ${error.cause.message}`);
    outcome = { error };
  }
  // A printed memory address differs in each run; here it is an error.
  const text = / at 0x[0-9a-f]+>/.test(expected.text ?? "") ? undefined : expected.text;
  report.checkEqual(
    name,
    outcome.text === text,
    `(${JSON.stringify(outcome.text ?? String(outcome.error))} for ${JSON.stringify(text ?? "an error")})`,
  );
}
