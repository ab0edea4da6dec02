import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";

import { runChatParity, runTokenizerParity } from "./chat.js";
import { ParityReport } from "./parity-report.js";

const fixtures = new URL("../fixtures/text/", import.meta.url);
let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parity-"));
  await mkdir(join(folder, "models"));
  await cp(new URL("published-templates.json", fixtures), join(folder, "templates.json"));
  await cp(new URL("model/", fixtures), join(folder, "models", "llama"), { recursive: true });
  await cp(new URL("model-expected.json", fixtures), join(folder, "models", "tokenizer.json"));
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

async function run(): Promise<{ report: ParityReport; lines: string[] }> {
  const lines: string[] = [];
  const report = new ParityReport((line) => lines.push(line));
  await runChatParity(folder, report, {});
  await runTokenizerParity(join(folder, "models"), report);
  return { report, lines };
}

it("passes the fixtures and reports missing ones", async () => {
  const { report, lines } = await run();
  expect([report.passed, report.failed]).toEqual([112 + 15, 0]);
  expect(lines.some((line) => line.startsWith("skip") && line.includes("smol.json"))).toBe(true);
});

it("fails a case whose text, error or ids differ", async () => {
  const change = async (name: string, from: string, to: string) => {
    const path = join(folder, name);
    const text = await readFile(path, "utf8");
    expect(text).toContain(from);
    await writeFile(path, text.replace(from, to));
  };
  await change("templates.json", "[INST] Hit or stick? [/INST]", "[INST] Hit or stick! [/INST]");
  await change("templates.json", '"error":"Conversation roles must', '"error":"Conversations must');
  await change("models/tokenizer.json", '"ids":[275,284', '"ids":[275,285');
  const { report, lines } = await run();
  expect(report.failed).toBe(3);
  expect(lines.filter((line) => line.startsWith("FAIL"))).toHaveLength(3);
});
