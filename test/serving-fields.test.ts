import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import type * as z from "zod";
import { messagesBody } from "../src/app/server/anthropic-messages.js";
import { chatBody } from "../src/app/server/openai-chat.js";
import { completionBody } from "../src/app/server/openai-completions.js";
import { responseBody } from "../src/app/server/openai-responses.js";
import { ignored } from "../src/app/server/wire-format.js";

const page = fileURLToPath(new URL("../docs/serving.md", import.meta.url));
const FIELDS_BLOCK = /(?<=<!-- fields -->\n)[\s\S]*(?=<!-- \/fields -->)/;
const BODIES = {
  "/v1/chat/completions": chatBody,
  "/v1/completions": completionBody,
  "/v1/responses": responseBody,
  "/v1/messages": messagesBody,
};
/** A value that is valid for no field. */
const PROBE = { x: 1 };

/** Returns what an API does with a field: nothing if it is unknown. */
function describeField(field: z.ZodType | undefined): string {
  if (field === undefined) return "";
  if (field === ignored) return "ignored";
  const [issue] = field.safeParse(PROBE).error?.issues ?? [];
  const messages = JSON.stringify(issue ?? {});
  return messages.includes("not supported") ? "refused" : "used";
}

function renderTable(): string {
  const shapes = Object.values(BODIES).map(({ shape }): Readonly<Record<string, z.ZodType>> => shape);
  const names = [...new Set(shapes.flatMap((shape) => Object.keys(shape)))].sort();
  const rows = names.map((name) => [`\`${name}\``, ...shapes.map((shape) => describeField(shape[name]))]);
  const header = ["field", ...Object.keys(BODIES).map((path) => `\`${path}\``)];
  return [header, header.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

const cells = (table: string) =>
  table
    .split("\n")
    .filter((line) => line.startsWith("|") && !/^\|[\s|-]*$/.test(line))
    .map((line) => line.split("|").map((cell) => cell.trim()));

it("docs/serving.md lists the fields of every API (UPDATE_DOCS=1 writes them)", async () => {
  const update = (text: string) => text.replace(FIELDS_BLOCK, `\n${renderTable()}\n\n`);
  if (process.env.UPDATE_DOCS === "1") await writeFile(page, update(await readFile(page, "utf8")));
  const text = await readFile(page, "utf8");
  expect(cells(FIELDS_BLOCK.exec(text)?.[0] ?? "")).toEqual(cells(renderTable()));
});
