// Trains Blackjack with three workers that are killed and started again while it learns, and prints
// the result. usage: npm run build && node scripts/train-with-kills.mjs [--redis URL] [options of
// llamagym train]
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const WORKERS = 3;
/** Lease of this test, so that a lost job is repeated soon. */
const LEASE_MS = 2000;
/** The settings of recipes/blackjack/quick.json, with 8 jobs per update. */
const SETTINGS =
  "--action-mode choices --turns 40960 --num-envs 256 --envs-per-job 32 --batch-size 2048 --mini-batch-size 512 " +
  "--num-ppo-epochs 4 --lam 0.95 --learning-rate 0.003 --entropy-coef 0.15 --entropy-scheduler-type linear " +
  "--eval-episodes 20000 --rollouts none --no-tensorboard --threads 1 --seed 1";

const command = fileURLToPath(new URL("../dist/app/cli/bin.js", import.meta.url));
const env = { ...process.env, LLAMAGYM_WORKER_LEASE_MS: String(LEASE_MS) };
const folder = mkdtempSync(join(tmpdir(), "train-with-kills-"));
const redis = process.argv.indexOf("--redis");
const address = redis < 0 ? ["--workers-folder", join(folder, "shared")] : process.argv.splice(redis, 2);
const start = (args, stdio) => spawn(process.execPath, [command, ...args], { env, stdio });

let isOver = false;
const workers = new Map();
function startWorker(name) {
  const child = start(["worker", ...address, "--threads", "1", "--name", name], "ignore");
  workers.set(name, child);
  child.once("exit", () => !isOver && startWorker(name));
}
for (let i = 1; i <= WORKERS; i++) startWorker(`worker-${i}`);

const train = ["train", "blackjack", ...SETTINGS.split(" "), ...address, "--output", join(folder, "run")];
const learner = start([...train, ...process.argv.slice(2)], "inherit");
const ended = new Promise((resolve) => learner.once("exit", resolve));
learner.once("exit", () => (isOver = true));
const isTraining = () => learner.exitCode === null && learner.signalCode === null;
let kills = 0;
while (isTraining()) {
  await Promise.race([sleep(5000 + 10_000 * Math.random()), ended]);
  if (isTraining() && [...workers.values()][kills++ % WORKERS].kill("SIGKILL")) continue;
}
process.exitCode = (await ended) ?? 1;
for (const child of workers.values()) child.kill("SIGKILL");
console.log(`${kills} kills of workers.`);
rmSync(folder, { recursive: true, force: true });
