// Kills every command that writes at random moments, runs it again, and compares with an
// uninterrupted run; then starts pairs of processes on one folder. Prints a table and exits with 1
// if anything differs. usage: npm run build && node scripts/kill-table.mjs [--kills 300] [--pairs
// 100] [--jobs 2] [--seed 1] [--only self-play,train]
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "300" },
    pairs: { type: "string", default: "100" },
    jobs: { type: "string", default: "2" },
    seed: { type: "string", default: "1" },
    only: { type: "string" },
  },
});
const [kills, pairs, jobs] = [values.kills, values.pairs, values.jobs].map(Number);
const bin = fileURLToPath(new URL("../dist/app/cli/bin.js", import.meta.url));
const root = mkdtempSync(join(tmpdir(), "kill-table-"));

/**
 * A small linear congruential generator: the moments of the kills repeat with the seed, the
 * machine's speed does not.
 */
let randomState = Number(values.seed) >>> 0;
const random = () => (randomState = (Math.imul(randomState, 1664525) + 1013904223) >>> 0) / 2 ** 32;

/**
 * Runs a command, which is killed after some milliseconds.
 *
 * `onStdout` receives everything that the process has written, and the process.
 */
function run(args, killAfterMs = 120_000, onStdout = () => {}) {
  return new Promise((resolve) => {
    const env = { ...process.env, LLAMAGYM_WORKER_LEASE_MS: "1000" };
    const child = spawn(process.execPath, [bin, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
    let [out, err] = ["", ""];
    child.stdout.on("data", (data) => onStdout((out += data), child));
    child.stderr.on("data", (data) => (err += data));
    const timer = setTimeout(() => child.kill("SIGKILL"), killAfterMs);
    child.once("close", (status) => {
      clearTimeout(timer);
      resolve({ status, err, isKilled: status === null });
    });
  });
}

const TRAIN =
  "--turns 64 --batch-size 16 --num-envs 4 --save-steps 1 --action-mode choices --device cpu --threads 1 --seed 3";
const train = ["train", "blackjack", ...TRAIN.split(" ")];
const hasRun = (folder) => existsSync(join(folder, "config.json"));
const data = join(root, "data.jsonl");
const adapter = join(root, "base", "adapter");

const opponents = `self:0.4,past:0.3,random:0.1,minimax:0.1,${adapter}:0.1`;
const LEAGUE = ["--self-play", "--snapshot-steps", "1", "--league-size", "3", "--opponents", opponents];
const selfPlay = ["train", "nim", ...LEAGUE, "--eval-exact", "--eval-steps", "3", ...TRAIN.split(" ")];

/** Numbers of metrics.jsonl apart from measured times. */
function readMetrics(folder) {
  const lines = readFileSync(join(folder, "metrics.jsonl"), "utf8").trim().split("\n");
  const isMeasured = (name) => /time|second|_per_/.test(name);
  return lines.map((line) => JSON.stringify(Object.entries(JSON.parse(line)).filter(([name]) => !isMeasured(name))));
}

/** Contents of a file, or of all files below a folder, as one hash. */
function hashFiles(path) {
  const hash = createHash("sha256");
  const add = (each) => {
    if (!statSync(each).isDirectory()) return hash.update(each.slice(path.length)).update(readFileSync(each));
    for (const name of readdirSync(each).sort()) add(join(each, name));
  };
  add(path);
  return hash.digest("hex");
}

const trainResult = (out) => [...readMetrics(out), hashFiles(join(out, "adapter"))];
const sweepResult = (out) =>
  readdirSync(join(out, "runs"))
    .sort()
    .flatMap((name) => trainResult(join(out, "runs", name)))
    .concat(readFileSync(join(out, "best.json"), "utf8"));
/** Numbers of the updates: what repeats where clients or workers decide the order. */
const stepsOf = (out) => [
  ...readMetrics(out).map((line) => new Map(JSON.parse(line)).get("step")),
  isFilled(join(out, "adapter")),
];
const isFilled = (out) => existsSync(out) && readdirSync(out).length > 0;

/** Plays sessions of three calls on a gateway until it has ended. */
async function playSessions(url) {
  const post = async (address, body) => {
    const response = await fetch(address, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  };
  const play = async () => {
    const session = await post(`${url}/sessions`, {});
    for (let turn = 0; turn < 3; turn++)
      await post(`${session.baseURL}/chat/completions`, {
        model: "policy",
        messages: [{ role: "user", content: `hit or stay? ${turn}` }],
      });
    await post(`${url}/sessions/${session.id}/end`, { reward: random() });
  };
  try {
    while (true) await Promise.all([play(), play(), play()]);
  } catch {
    // A gateway that was killed, or has trained all of its turns, no longer answers.
  }
}

/** Runs a gateway with clients. */
function runGateway(args, killAfterMs) {
  let isPlaying = false;
  return run(args, killAfterMs, (out) => {
    const url = /Gateway: +(http:\S+?)(\/v1)?\s/.exec(out)?.[1];
    if (url === undefined || isPlaying) return;
    isPlaying = true;
    void playSessions(url);
  });
}

/**
 * Runs training whose worker is killed after some milliseconds, and another one takes its place.
 */
async function runWithWorkers(args, killAfterMs) {
  const worker = ["worker", "--threads", "1", "--workers-folder", args[args.indexOf("--workers-folder") + 1]];
  const first = killAfterMs === undefined ? undefined : run(worker, killAfterMs);
  const trained = run(args);
  const killed = await first;
  // It answers SIGTERM once it is ready, which its first line says.
  let setReady;
  const ready = new Promise((resolve) => (setReady = resolve));
  const ended = run(worker, undefined, (_, child) => setReady(child));
  const { status, err } = await trained;
  (await ready).kill("SIGTERM");
  await ended;
  return { status, err, isKilled: killed?.isKilled === true };
}

/**
 * Commands: how they start, how they run again after a kill, and what of their output is compared.
 */
const COMMANDS = {
  train: {
    start: (out) => [...train, "--output", out],
    again: (out) => (hasRun(out) ? ["train", "--resume", out] : [...train, "--output", out]),
    result: trainResult,
  },
  "self-play": {
    start: (out) => [...selfPlay, "--output", out],
    again: (out) => (hasRun(out) ? ["train", "--resume", out] : COMMANDS["self-play"].start(out)),
    result: trainResult,
  },
  sft: {
    start: (out) => ["sft", "-d", data, "--max-steps", "12", "--save-steps", "1", "--threads", "1", "-o", out],
    again: (out) => (hasRun(out) ? ["sft", "--resume", out] : COMMANDS.sft.start(out)),
    result: (out) => [...readMetrics(out), hashFiles(join(out, "model"))],
  },
  sweep: {
    start: (out) => ["sweep", ...train.slice(1, -2), "-s", "learningRate=1e-3,3e-3", "--output", out],
    again: (out) => COMMANDS.sweep.start(out),
    result: sweepResult,
  },
  export: {
    start: (out) => ["export", adapter, "--format", "gguf", "--output", out],
    again: (out) => (isFilled(out) ? ["--version"] : COMMANDS.export.start(out)),
    result: (out) =>
      readdirSync(out)
        .filter((name) => name !== "README.md" && name !== "Modelfile")
        .map((name) => hashFiles(join(out, name))),
  },
  merge: {
    start: (out) => ["merge", adapter, "--output", out],
    again: (out) => (isFilled(out) ? ["--version"] : COMMANDS.merge.start(out)),
    result: (out) => [hashFiles(join(out, "model.safetensors")), readFileSync(join(out, "config.json"), "utf8")],
  },
  demos: {
    start: (out) => ["demos", "blackjack", "--episodes", "2000", "--output", `${out}.jsonl`],
    again: (out) => COMMANDS.demos.start(out),
    result: (out) => [hashFiles(`${out}.jsonl`)],
  },
  gateway: {
    start: (out) =>
      "gateway --turns 48 --batch-size 12 --save-steps 1 --port 0 --threads 1 --output".split(" ").concat(out),
    again: (out) => (hasRun(out) ? ["gateway", "--port", "0", "--resume", out] : COMMANDS.gateway.start(out)),
    run: runGateway,
    result: stepsOf,
  },
  worker: {
    start: (out) => [...train, "--workers-folder", join(out, "..", "workers"), "--output", out],
    // Only the worker was killed: training has ended.
    again: () => ["--version"],
    run: runWithWorkers,
    result: stepsOf,
  },
};

/** Names that no killed process may leave for the next one. */
function findLeftovers(folder) {
  return readdirSync(folder, { recursive: true }).filter((name) => /\.partial(\/|$)|\.lock/.test(name));
}

const references = {};

let numFolders = 0;
async function killOnce(name, durationMs) {
  const { start, again, result, run: runCommand = run } = COMMANDS[name];
  const parent = join(root, `${name}-${numFolders++}`);
  mkdirSync(parent);
  const out = join(parent, "out");
  const first = await runCommand(start(out), random() * durationMs);
  const faults = [];
  if (!first.isKilled && first.status !== 0) faults.push(`without a kill: ${first.err.trim().split("\n").at(-1)}`);
  const args = again(out);
  const { status, err } = await (args[0] === "--version" ? run : runCommand)(args);
  if (status !== 0) faults.push(`status ${status}: ${err.trim().split("\n").at(-1)}`);
  else if (JSON.stringify(result(out)) !== references[name]) faults.push("another result");
  const leftovers = findLeftovers(parent);
  if (leftovers.length > 0) faults.push(`left ${leftovers.join(", ")}`);
  for (const fault of faults) console.log(`${name}: ${fault} (${parent})`);
  if (faults.length === 0) rmSync(parent, { recursive: true });
  return { isKilled: first.isKilled, isGood: faults.length === 0 };
}

/** Starts a pair of processes on one folder: exactly one trains, the other one refuses by name. */
async function pairOnce(isResumed) {
  const out = join(root, `pair-${numFolders++}`);
  if (isResumed) await run([...train, "--output", out], random() * references.trainMs);
  const outcomes = await Promise.all([1, 2].map(() => run(COMMANDS.train.again(out))));
  const refused = outcomes.filter(({ err }) => /FOLDER_IN_USE|already contains a run/.test(err));
  const isGood =
    outcomes.filter(({ status }) => status === 0).length === 1 &&
    refused.length === 1 &&
    JSON.stringify(trainResult(out)) === references.train &&
    findLeftovers(out).length === 0;
  if (isGood) rmSync(out, { recursive: true });
  else
    console.log(
      `pair: ${outcomes.map(({ status, err }) => `${status} ${err.trim().split("\n").at(-1)}`).join(" | ")} (${out})`,
    );
  return { isGood };
}

/**
 * Kills a command that often, several at a time; a command that ended before its kill does not
 * count.
 */
async function killOften(name, count, durationMs) {
  const results = [];
  const numKilled = () => results.filter((each) => each.isKilled).length;
  let running = 0;
  await Promise.all(
    Array.from({ length: jobs }, async () => {
      while (numKilled() + running < count && results.length < 3 * count) {
        running++;
        const result = await killOnce(name, durationMs);
        running--;
        results.push(result);
      }
    }),
  );
  return results;
}

const lines = ["14 or 20?", "6 or 7?"].map((prompt) => JSON.stringify({ prompt, completion: "stay" }));
writeFileSync(data, `${lines.join("\n")}\n`);
await run([...train, "--output", join(root, "base")]);
const rows = [];
const names = Object.keys(COMMANDS).filter((name) => values.only?.split(",").includes(name) ?? true);
for (const [i, name] of names.entries()) {
  const out = join(root, `whole-${name}`);
  const start = performance.now();
  const { start: startArgs, result, run: runCommand = run } = COMMANDS[name];
  const { status, err } = await runCommand(startArgs(out));
  if (status !== 0) throw new Error(`${name} failed: ${err}`);
  const durationMs = performance.now() - start;
  references[name] = JSON.stringify(result(out));
  references[`${name}Ms`] = durationMs;
  const count = Math.floor(kills / names.length) + (i < kills % names.length ? 1 : 0);
  const results = await killOften(name, count, durationMs);
  rows.push([
    name,
    results.length,
    results.filter((each) => each.isKilled).length,
    results.filter((each) => each.isGood).length,
  ]);
  console.log(`${name}: ${rows.at(-1).slice(1).join(" ")}`);
}
const pairResults = [];
// Their result is compared with the one of train.
for (let i = 0; i < pairs && names.includes("train"); i++) {
  pairResults.push(await pairOnce(i % 2 === 1));
  if (i % 10 === 9) console.log(`pairs: ${i + 1}`);
}
if (names.includes("train"))
  rows.push(["pairs of train", pairResults.length, "", pairResults.filter((each) => each.isGood).length]);

console.log("\ncommand          attempts   killed     good");
for (const [name, ...numbers] of rows)
  console.log(name.padEnd(16) + numbers.map((value) => String(value).padStart(9)).join(""));
const isGood = rows.every(([, attempts, , good]) => attempts === good);
if (isGood) rmSync(root, { recursive: true });
process.exitCode = isGood ? 0 : 1;
