// Short training runs whose metrics a refactoring must leave equal, number by number, on one
// machine. usage: npm run build && node scripts/golden.mjs record DIR [RUN...] writes the metrics
// of each run to DIR/RUN/metrics.jsonl
// npm run build && node scripts/golden.mjs compare DIR [RUN...] runs again and reports differences
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../dist/app/cli/bin.js", import.meta.url));
const DEMONSTRATIONS = "demonstrations.jsonl";

const commands = {
  ppo: "train blackjack --turns 2000 --batch-size 400 --seed 3",
  "ppo-choices":
    "train cartpole --action-mode choices --tuning full --turns 1200 --num-envs 8 --batch-size 300 --mini-batch-size 64 --num-ppo-epochs 2 --seed 1",
  grpo: "train blackjack --algorithm grpo --turns 1500 --batch-size 64 --seed 2",
  rloo: "train blackjack --algorithm rloo --turns 1500 --batch-size 64 --seed 2",
  reinforce: "train frozenlake --algorithm reinforce --action-mode choices --turns 1500 --batch-size 64 --seed 2",
  history:
    "train cartpole --history-turns 2 --turns 400 --num-envs 4 --batch-size 100 --max-completion-length 6 --seed 5",
  sft: `sft --data ${DEMONSTRATIONS} --num-train-epochs 2 --batch-size 16 --lora-dropout 0.1 --eval-split 0.2 --seed 4`,
  "warm-start": `train blackjack --turns 800 --batch-size 200 --seed 3 --online-sft --sft-warm-start ${DEMONSTRATIONS} --sft-steps 3`,
};

function run(folder, args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`llamagym ${args.join(" ")} failed:\n${stdout.slice(-2000)}${stderr.slice(-2000)}`);
}

/** Metrics of GrpoTrainer and RlooTrainer, which have no command. */
async function runPromptTrainer(folder, name) {
  const library = await import("../dist/index.js");
  const base = await library.AutoModelForCausalLM.fromPretrained("embedded", { threads: 1 });
  const model = await library.getPeftModel(base, { r: 16, loraAlpha: 32, seed: 1 });
  const trainDataset = Array.from({ length: 18 }, (_, i) => ({
    prompt: [
      { role: "system", content: "Blackjack. Answer hit or stay." },
      { role: "user", content: `Your current total is ${i + 4}. hit or stay?` },
    ],
    answer: i + 4 < 17 ? "hit" : "stay",
  }));
  const isRight = ({ completions, answer }) => completions.map((text, i) => (text.trim() === answer[i] ? 1 : 0));
  const args = { maxSteps: 6, batchSize: 36, numGenerations: 4, maxCompletionLength: 8, learningRate: 2e-3, seed: 1 };
  const trainer = new library[name]({ model, rewardFuncs: [isRight], trainDataset, args });
  const lines = [];
  await trainer.train({ onStep: (step, metrics) => lines.push(JSON.stringify({ step, ...metrics })) });
  await model.close();
  mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, name, "metrics.jsonl"), `${lines.join("\n")}\n`);
}

const RUNS = [...Object.keys(commands), "GrpoTrainer", "RlooTrainer"];

async function record(folder, names) {
  mkdirSync(folder, { recursive: true });
  if (!existsSync(join(folder, DEMONSTRATIONS)))
    run(folder, ["demos", "blackjack", "--episodes", "60", "--seed", "1", "--output", DEMONSTRATIONS]);
  for (const name of names) {
    console.error(name);
    rmSync(join(folder, name), { recursive: true, force: true });
    if (Object.hasOwn(commands, name)) run(folder, [...commands[name].split(" "), "--output", name, "--threads", "1"]);
    else await runPromptTrainer(folder, name);
  }
}

const readMetrics = (folder, name) =>
  readFileSync(join(folder, name, "metrics.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
const isTiming = (key) => /time|per_second/.test(key);

/** Differences of a run: metrics that appear, disappear or have another value. */
function compareRuns(expected, actual) {
  if (expected.length !== actual.length) return [`${expected.length} steps before, ${actual.length} now`];
  const differences = new Set();
  expected.forEach((row, i) => {
    for (const key of new Set([...Object.keys(row), ...Object.keys(actual[i])]))
      if (!isTiming(key) && row[key] !== actual[i][key]) differences.add(key);
  });
  return [...differences];
}

const [mode, directory, ...given] = process.argv.slice(2);
const names = given.length > 0 ? given : RUNS;
if (mode === "record" && directory !== undefined) {
  await record(resolve(directory), names);
} else if (mode === "compare" && directory !== undefined) {
  const folder = mkdtempSync(join(tmpdir(), "golden-"));
  await record(folder, names);
  let failed = 0;
  for (const name of names) {
    const differences = compareRuns(readMetrics(resolve(directory), name), readMetrics(folder, name));
    console.log(differences.length === 0 ? `${name}: equal` : `${name}: ${differences.join(", ")}`);
    if (differences.length > 0) failed++;
  }
  rmSync(folder, { recursive: true });
  process.exitCode = failed === 0 ? 0 : 1;
} else {
  console.error("usage: node scripts/golden.mjs record|compare DIR [RUN...]");
  process.exitCode = 2;
}
