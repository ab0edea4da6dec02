import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { AutoModelForCausalLM, LlamaGymError, PeftModel, type RandomStream } from "../../../src/index.js";
import { resumeRun } from "../../../src/app/runs/index.js";
import { resumeSftRun } from "../../../src/app/runs/sft-run.js";
import type { Driver } from "../driver.js";

const COMMAND = resolve("dist", "app", "cli", "main.js");
const COMMON = ["--device", "cpu", "--threads", "1", "--save-steps", "1", "--seed", "3", "--r", "2"];
const SIZE = ["--turns", "48", "--batch-size", "16", "--num-envs", "4"];

const DEMOS = "demos.jsonl";

/** Prepared folders: two runs with two checkpoints each, and an exported model. */
const COMMANDS: readonly (readonly string[])[] = [
  ["demos", "blackjack", "--episodes", "12", "--seed", "1", "--output", DEMOS],
  ["train", "blackjack", ...COMMON, ...SIZE, "--output", "train"],
  ["sft", "--data", DEMOS, "--max-steps", "3", "--batch-size", "4", ...COMMON, "--output", "sft"],
  ["merge", "train", "--output", "export"],
  // Other files for the same names.
  ["train", "blackjack", ...COMMON, ...SIZE, "--seed", "4", "--output", "other-train"],
  ["merge", "other-train", "--output", "other-export"],
];

/** Damage that storage does to a file. */
const DAMAGES = ["flipped bit", "zeroed tail", "truncated", "changed digit", "deleted", "swapped"] as const;
const TARGETS = ["train", "sft", "adapter", "export"] as const;
const CHECKSUMS = "SHA256SUMS";
const OPTIONS = { device: "cpu", threads: 1 } as const;

/** What was done to which files; a swap damages two. */
interface Damage {
  readonly target: (typeof TARGETS)[number];
  readonly kind: (typeof DAMAGES)[number];
  readonly files: readonly string[];
}

/** Replaces digits of a text by others. */
function changeDigit(bytes: Buffer, random: RandomStream): void {
  const digits = Array.from(bytes.keys()).filter((i) => bytes[i] >= 0x30 && bytes[i] <= 0x39);
  if (digits.length === 0) return;
  const at = random.choice(digits);
  bytes[at] = 0x30 + ((bytes[at] - 0x30 + 1 + random.integers(9)) % 10);
}

/** Damages a file; returns false if that changes nothing. */
function damageFile(path: string, kind: Damage["kind"], random: RandomStream): boolean {
  const bytes = readFileSync(path);
  const before = Buffer.from(bytes);
  const at = random.integers(bytes.length);
  if (kind === "deleted") rmSync(path);
  else if (kind === "truncated") writeFileSync(path, bytes.subarray(0, at));
  else {
    if (kind === "flipped bit") bytes[at] ^= 1 << random.integers(8);
    else if (kind === "zeroed tail") bytes.fill(0, at);
    else changeDigit(bytes, random);
    writeFileSync(path, bytes);
    return !bytes.equals(before);
  }
  return true;
}

function swapFiles(path: string, other: string): boolean {
  if (readFileSync(path).equals(readFileSync(other))) return false;
  renameSync(path, `${path}.swap`);
  renameSync(other, path);
  renameSync(`${path}.swap`, other);
  return true;
}

/** The files that have checksums, and their list. */
function listFiles(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return names.filter((name) => name !== "README.md" && statSync(join(folder, name)).isFile()).sort();
}

/** Copies a target and damages one of its files, or two by a swap. */
function makeDamaged(prepared: string, scratch: string, random: RandomStream): Damage {
  const target = random.choice(TARGETS);
  const source = target === "adapter" ? "train" : target;
  for (const name of [source, `other-${source}`]) {
    rmSync(join(scratch, name), { recursive: true, force: true });
    if (name !== "other-sft") cpSync(join(prepared, name), join(scratch, name), { recursive: true });
  }
  const isRun = target === "train" || target === "sft";
  const [folder, other] = isRun
    ? [join(scratch, target, "checkpoints", "000003"), join(scratch, target, "checkpoints", "000002")]
    : ["", "other-"].map((prefix) => join(scratch, prefix + source, target === "adapter" ? "adapter" : ""));
  for (;;) {
    const kind = random.choice(DAMAGES);
    const file = random.choice(listFiles(folder));
    const path = join(folder, file);
    // Without the list, the folder is one of another tool.
    if (!isRun && file === CHECKSUMS && kind === "deleted") continue;
    if (kind === "swapped") {
      if (swapFiles(path, join(other, file)))
        return { target, kind, files: isRun ? [path, join(other, file)] : [path] };
    } else if (damageFile(path, kind, random)) return { target, kind, files: [path] };
  }
}

/**
 * Opens what was damaged; returns the number of updates that a run resumes from and its warnings.
 */
async function openTarget(target: Damage["target"], scratch: string): Promise<{ resumedAt: number; warnings: string }> {
  const warnings: string[] = [];
  const options = { onWarning: (message: string) => warnings.push(message) };
  if (target === "train" || target === "sft") {
    const folder = join(scratch, target);
    const run = await (target === "train" ? resumeRun(folder, {}, options) : resumeSftRun(folder, {}, options));
    const { resumedAt } = run;
    await run.close();
    return { resumedAt, warnings: warnings.join("\n") };
  }
  const model =
    target === "adapter"
      ? await PeftModel.fromPretrained(
          await AutoModelForCausalLM.fromPretrained("embedded", OPTIONS),
          join(scratch, "train", "adapter"),
        )
      : await AutoModelForCausalLM.fromPretrained(join(scratch, "export"), OPTIONS);
  await model.close();
  return { resumedAt: 0, warnings: "" };
}

/** Opens what was damaged. @throws its refusal, and an Error if the damage is not noticed. */
async function openDamaged({ target, kind, files }: Damage, scratch: string): Promise<void> {
  const what = `${kind}: ${files.join(", ")}`;
  const isNamed = (message: string) => files.some((file) => message.includes(file)) || files[0].endsWith(CHECKSUMS);
  let opened: Awaited<ReturnType<typeof openTarget>>;
  try {
    opened = await openTarget(target, scratch);
  } catch (error) {
    const isRefusal = error instanceof LlamaGymError && error.code === "FILE_CORRUPT" && isNamed(error.message);
    if (isRefusal) throw error;
    throw new Error(`${what} ends in another error: ${String(error)}`, { cause: error });
  }
  const { resumedAt, warnings } = opened;
  if (resumedAt !== 2 || !/000003 is not used/.test(warnings) || !isNamed(warnings))
    throw new Error(`${what} was not noticed; resumed at ${resumedAt}, with the warnings "${warnings}".`);
}

/** Fills a folder with what is damaged. */
function prepare(folder: string): void {
  const env = { ...process.env, WANDB_PROJECT: "" };
  for (const command of COMMANDS) {
    // A run that is moved finds its data by the absolute path.
    const args = command.map((arg) => (arg === DEMOS ? join(folder, DEMOS) : arg));
    execFileSync(process.execPath, [COMMAND, ...args], { cwd: folder, env, stdio: "pipe" });
  }
}

/**
 * Damaged checkpoints, adapters and exports: each is refused by name, or the checkpoint before is
 * used and said.
 */
export const checkpoints: Driver = {
  timeLimitMs: 20_000,
  share: 0.05,
  async start(scratch) {
    const prepared = join(scratch, "prepared");
    mkdirSync(prepared);
    prepare(prepared);
    return async (random: RandomStream) => openDamaged(makeDamaged(prepared, scratch, random), scratch);
  },
};
