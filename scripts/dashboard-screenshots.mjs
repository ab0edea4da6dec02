// Writes the pictures of docs/dashboard.md from short runs, which it trains, or from the runs of a
// folder. usage: npm run screenshots [-- RUNS] (needs Chromium at /usr/bin/chromium, and the
// package to be built)
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, mkdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const COMMAND = fileURLToPath(new URL("../dist/app/cli/bin.js", import.meta.url));
const PICTURES = fileURLToPath(new URL("../docs/images/dashboard/", import.meta.url));
const MAX_BYTES = 160_000;
const SHORT_UPDATES = ["--batch-size", "128", "--mini-batch-size", "64", "--num-ppo-epochs", "2"];
const TRAINING = [
  ["blackjack", ...SHORT_UPDATES, "--episodes", "1500", "--seed", "1", "--output", "blackjack-ppo-1"],
  ["blackjack", ...SHORT_UPDATES, "--episodes", "1500", "--seed", "2", "--output", "blackjack-ppo-2"],
  ["frozen-lake", "--algorithm", "grpo", "--episodes", "384", "--output", "frozen-lake-grpo"],
  ["blackjack", "--algorithm", "grpo", "--episodes", "512", "--output", "blackjack-grpo"],
];
const LEAGUE = ["--opponents", "self:0.6,past:0.3,random:0.1", "--snapshot-steps", "5", "--turns", "20000"];
const SELF_PLAY = ["nim", "--self-play", ...LEAGUE, "--eval-exact", "--eval-steps", "2"];
const SELF_PLAY_TRAINING = [...SELF_PLAY, "--action-mode", "scored", "--output", "nim"];
const ELO = ["eval", "nim", "--elo", "--adapter", "nim/adapter"];
const SEARCH = ["-s", "learningRate=0.0003,0.001,0.003,0.01", "-s", "entropyCoef=0,0.02,0.05", "--trials", "8"];
const SWEEP = ["sweep", "blackjack", ...SEARCH, ...SHORT_UPDATES, "--turns", "512", "--output", "blackjack-sweep"];
const SHARED = "shared";
const WORKERS = ["--workers-folder", SHARED, "--max-staleness", "1", ...SHORT_UPDATES];
const WORKERS_TRAINING = ["blackjack", ...WORKERS, "--episodes", "900", "--output", "blackjack-workers"];
const BOTH = "run=blackjack-ppo-1&run=blackjack-ppo-2";
const click = (name) => (page) => page.getByRole("button", { name, exact: true }).click();

/** Name, address, and what is done before the picture is taken. */
const VIEWS = [
  ["runs", "#/runs"],
  ["curves", `#/curves?${BOTH}`],
  ["sweep", "#/sweep?id=blackjack-sweep"],
  ["episodes", "#/episodes?run=frozen-lake-grpo", click("Next turn")],
  ["tokens", "#/tokens?run=frozen-lake-grpo"],
  ["groups", "#/groups?run=blackjack-grpo"],
  ["compare", `#/compare?${BOTH}`, click("Play both"), ".screen"],
  ["opponents", "#/opponents?run=nim"],
  ["play", "#/play?run=frozen-lake-grpo", click("Load"), ".play-form"],
  ["control", "#/control?run=blackjack-ppo-1"],
  ["health", "#/health?run=blackjack-ppo-1"],
  ["workers", "#/workers?run=blackjack-workers"],
];

function trainRuns() {
  const folder = mkdtempSync(join(tmpdir(), "screenshots-"));
  const options = { cwd: folder, stdio: "inherit" };
  const workers = [];
  for (const args of [...TRAINING, SELF_PLAY_TRAINING, WORKERS_TRAINING]) {
    if (args === WORKERS_TRAINING)
      for (const name of ["worker-1", "worker-2", "worker-3"]) {
        const worker = ["worker", "--workers-folder", SHARED, "--threads", "1", "--name", name];
        workers.push(spawn(process.execPath, [COMMAND, ...worker], options));
      }
    const { status } = spawnSync(process.execPath, [COMMAND, "train", ...args], options);
    if (status !== 0) process.exit(1);
  }
  for (const worker of workers) worker.kill();
  for (const args of [SWEEP, ELO])
    if (spawnSync(process.execPath, [COMMAND, ...args], options).status !== 0) process.exit(1);
  return folder;
}

async function startServer(runs) {
  const child = spawn(process.execPath, [COMMAND, "dashboard", runs, "--port", "0"]);
  for await (const data of child.stdout) {
    const link = /http:\/\/\S+/.exec(String(data));
    if (link !== null) return { child, url: link[0] };
  }
  throw new Error("llamagym dashboard has ended");
}

const { child, url } = await startServer(process.argv[2] ?? trainRuns());
const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"];
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args });
mkdirSync(PICTURES, { recursive: true });

async function takePicture(page, [name, address, prepare, expected], suffix = "") {
  await page.evaluate(`location.hash = ${JSON.stringify(address)}`);
  await page.waitForTimeout(2000);
  await prepare?.(page);
  if (expected !== undefined) await page.locator(expected).first().waitFor({ timeout: 60_000 });
  await page.waitForTimeout(800);
  const path = join(PICTURES, `${name}${suffix}.png`);
  await page.screenshot({ path });
  const { size } = statSync(path);
  if (size > MAX_BYTES) throw new Error(`${path} has ${size} bytes, more than ${MAX_BYTES}.`);
}

const findView = (name) => VIEWS.find(([view]) => view === name);
const page = await browser.newPage({ viewport: { width: 1280, height: 760 } });
await page.goto(url);
for (const view of VIEWS) await takePicture(page, view);
const dark = await browser.newPage({ viewport: { width: 1280, height: 760 }, colorScheme: "dark" });
await dark.goto(url);
await takePicture(dark, findView("curves"), "-dark");
const phone = await browser.newPage({ viewport: { width: 390, height: 760 } });
await phone.goto(url);
await takePicture(phone, findView("episodes"), "-phone");
await browser.close();
child.kill();
