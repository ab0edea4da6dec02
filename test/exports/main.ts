// Exports models and runs them in transformers.js and node-llama-cpp: npm run test:exports [--
// MODEL ...] Random models of every architecture and a policy trained on Blackjack, or the given
// models. Compares tokens, the most likely token at each position, greedy completions, and the
// policy's return. Ends with status 1 when a comparison fails.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AutoModelForCausalLM, type LanguageModel } from "../../src/index.js";
import type { ExportDtype } from "../../src/models/export/export-model.js";
import { ForwardPass } from "../parity/models/forward-pass.js";
import { writeRandomModel } from "../support/random-model.js";
import { ARCHITECTURES, ONNX_ONLY } from "./architectures.js";
import { playBlackjack, PROMPTS, trainBlackjack } from "./blackjack-policy.js";

const clients = fileURLToPath(new URL("../../../exports/clients.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "exports-"));

/** All cases of a client; generous, as two cores may be shared. */
const TIMEOUT_MS = 600_000;
/** Positions at which the most likely tokens are compared. */
const POSITIONS = 2000;
const SEQUENCE_LENGTH = 100;
const MAX_TOKENS = 20;

interface Case {
  readonly sequences: readonly (readonly number[])[];
  readonly prompts: readonly string[];
}

interface Result {
  readonly top: readonly (readonly number[])[];
  readonly encoded: readonly (readonly number[])[];
  readonly completions: readonly string[];
}

let failed = false;
function report(label: string, holds: boolean): void {
  failed ||= !holds;
  console.log(`${holds ? "ok  " : "FAIL"} ${label}`);
}

interface PendingCase extends Case {
  readonly path: string;
  readonly maxTokens: number;
  readonly check: (result: Result) => void | Promise<void>;
}

const pending: Readonly<Record<"gguf" | "onnx", PendingCase[]>> = { gguf: [], onnx: [] };

/** Exports a model for a case, which runs at the end, when each client is started once for all. */
async function addCase(
  model: LanguageModel,
  format: "gguf" | "onnx",
  dtype: ExportDtype,
  input: Case,
  check: PendingCase["check"],
): Promise<void> {
  const output = join(folder, `${format}-${pending[format].length}`);
  await model.export(output, { format, dtype });
  const path = format === "gguf" ? join(output, "model.gguf") : output;
  pending[format].push({ ...input, path, maxTokens: MAX_TOKENS, check });
}

async function runCases(format: "gguf" | "onnx", client: string): Promise<void> {
  const { status, stdout, stderr } = spawnSync(process.execPath, [clients, client], {
    input: JSON.stringify(pending[format]),
    encoding: "utf8",
    timeout: TIMEOUT_MS,
    maxBuffer: 2 ** 28,
  });
  if (status !== 0) throw new Error(`${client} ended with status ${status}: ${stderr.slice(-2000)}`);
  const results = JSON.parse(stdout.trimEnd().split("\n").at(-1)!) as Result[];
  for (const [i, { check }] of pending[format].entries()) await check(results[i]);
}

/** The most likely token after a token, and how much its logit exceeds the next one's. */
interface TopToken {
  readonly token: number;
  readonly margin: number;
}

/** Finds the most likely token after each token, computed here. */
async function computeTop(model: LanguageModel, sequences: Case["sequences"]): Promise<TopToken[]> {
  const forward = await ForwardPass.create(model.causalLM);
  const { vocabSize } = model.causalLM.config;
  const result: TopToken[] = [];
  for (const ids of sequences) {
    const { logits } = await forward.run([ids]);
    result.push(...ids.map((_, i) => findTop(logits.subarray(i * vocabSize, (i + 1) * vocabSize))));
  }
  await forward.release();
  return result;
}

function findTop(row: Float32Array): TopToken {
  const token = row.reduce((best, value, i) => (value > row[best] ? i : best), 0);
  const next = row.reduce((best, value, i) => (i === token ? best : Math.max(best, value)), -Infinity);
  return { token, margin: row[token] - next };
}

/**
 * Reports the share of positions with the same most likely token: of all, and of those that are no
 * near ties.
 */
function reportTop(label: string, dtype: ExportDtype, { top }: Result, expected: readonly TopToken[]): void {
  const { margin, share } = LIMITS[dtype as keyof typeof LIMITS];
  const tokens = top.flat();
  const isSame = expected.map(({ token }, i) => token === tokens[i]);
  const clear = isSame.filter((_, i) => expected[i].margin > margin);
  const [same, sameClear] = [isSame, clear].map((list) => list.filter(Boolean).length);
  const ofClear = `${sameClear} of ${clear.length} where it leads by ${margin}`;
  report(
    `${label}: same most likely token at ${same} of ${expected.length} positions, ${ofClear}`,
    sameClear >= share * clear.length,
  );
}

/** Continues prompts by the model's own samples up to a number of tokens in all. */
async function sampleSequences(model: LanguageModel, prompts: readonly string[]): Promise<number[][]> {
  const sequences: number[][] = [];
  for (let i = 0; sequences.length * SEQUENCE_LENGTH < POSITIONS; i++) {
    let ids: number[] = [];
    for (let j = i; ids.length < SEQUENCE_LENGTH; j++) {
      const prompt = model.tokenizer.encode(prompts[j % prompts.length]);
      const { tokens } = await model.generate(prompt, { temperature: 1, maxNewTokens: 40, seed: j });
      ids = [...ids, ...prompt, ...tokens];
    }
    sequences.push(ids.slice(0, SEQUENCE_LENGTH));
  }
  return sequences;
}

/**
 * Share of positions with the same most likely token that each type must reach, where its logit
 * leads by a margin.
 */
const LIMITS = {
  F32: { margin: 0.02, share: 1 },
  F16: { margin: 0.02, share: 1 },
  Q8: { margin: 0.2, share: 0.99 },
  Q4: { margin: 1, share: 0.9 },
} as const;

async function compareModel(model: LanguageModel, name: string, prompts: readonly string[]): Promise<void> {
  const sequences = await sampleSequences(model, prompts);
  const expected = await computeTop(model, sequences);
  const encoded = prompts.map((prompt) => model.tokenizer.encode(prompt));
  const greedy = await model.generateBatch(encoded, { temperature: 0, maxNewTokens: MAX_TOKENS });
  const texts = greedy.map(({ text }) => text);
  for (const format of ["gguf", "onnx"] as const) {
    for (const dtype of ["F32", "F16", "Q8", "Q4"] as const) {
      await addCase(model, format, dtype, { sequences, prompts }, (result) => {
        const label = `${name}, ${format} ${dtype}`;
        reportTop(label, dtype, result, expected);
        const isEncodedEqually = JSON.stringify(result.encoded) === JSON.stringify(encoded);
        report(`${label}: same tokens of ${prompts.length} prompts`, isEncodedEqually);
        const same = result.completions.filter((text, i) => text.trim() === texts[i].trim()).length;
        report(
          `${label}: same greedy text of ${same} of ${texts.length} prompts`,
          dtype !== "F32" || same === texts.length,
        );
      });
    }
  }
}

async function openEmbedded() {
  const { tokenizer, causalLM } = await AutoModelForCausalLM.fromPretrained("embedded", { device: "cpu" });
  await causalLM.close();
  return { tokenizer, vocabSize: causalLM.config.vocabSize };
}

async function compareArchitectures(): Promise<void> {
  const { tokenizer, ...embedded } = await openEmbedded();
  for (const [type, fields] of Object.entries({ ...ARCHITECTURES, ...ONNX_ONLY })) {
    const config = { model_type: type, ...fields, vocab_size: embedded.vocabSize };
    const random = await writeRandomModel({ config, withTokenizer: false });
    const model = await AutoModelForCausalLM.fromPretrained(random.folder, { device: "cpu", tokenizer });
    const sequences = [Array.from({ length: 48 }, (_, i) => (i * 37 + 5) % embedded.vocabSize)];
    const expected = await computeTop(model, sequences);
    const formats = type in ONNX_ONLY ? (["onnx"] as const) : (["gguf", "onnx"] as const);
    for (const format of formats) {
      const prompts = ["Hello, world's 2nd café"];
      await addCase(model, format, "F32", { sequences, prompts }, (result) =>
        reportTop(`${type}, ${format} F32`, "F32", result, expected),
      );
    }
    await model.close();
    await random.remove();
  }
}

/** Plays hands with the replies of llama.cpp and with the model's own. */
async function comparePolicy(model: LanguageModel): Promise<void> {
  const encoded = PROMPTS.map((prompt) => model.tokenizer.encode(prompt));
  const own = (await model.generateBatch(encoded, { temperature: 0, maxNewTokens: 4 })).map(({ text }) => text);
  const ours = await playBlackjack(own, 1);
  for (const dtype of ["F16", "Q8", "Q4"] as const) {
    await addCase(model, "gguf", dtype, { sequences: [], prompts: PROMPTS }, async ({ completions }) => {
      const theirs = await playBlackjack(completions, 1);
      const error = ours.standardError;
      const numbers = `${theirs.mean.toFixed(4)}, here ${ours.mean.toFixed(4)} on the same cards, standard error ${error.toFixed(4)}`;
      const same = completions.filter((text, i) => text === own[i]).length;
      report(
        `Blackjack policy, gguf ${dtype}, in llama.cpp: mean return ${numbers}; same reply in ${same} of ${own.length} states`,
        dtype === "Q4" || Math.abs(theirs.mean - ours.mean) <= error,
      );
    });
  }
}

const given = process.argv.slice(2);
try {
  for (const name of given) {
    const model = await AutoModelForCausalLM.fromPretrained(name, { device: "cpu" });
    const prompts = [
      "What is the capital of France?",
      "Write a haiku about rain.",
      "2 + 2 =",
      "Name three colors.",
    ].map((content) => model.tokenizer.applyChatTemplate([{ role: "user", content }], { addGenerationPrompt: true }));
    await compareModel(model, name, prompts);
    await model.close();
  }
  if (given.length === 0) {
    await compareArchitectures();
    const policy = await trainBlackjack();
    await compareModel(policy, "Blackjack policy", PROMPTS.slice(0, 40));
    await comparePolicy(policy);
    await policy.close();
  }
  await runCases("gguf", "llama");
  await runCases("onnx", "transformers");
} finally {
  rmSync(folder, { recursive: true });
}
process.exit(failed ? 1 : 0);
