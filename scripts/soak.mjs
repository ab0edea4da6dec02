// Keeps training, a model server, a gateway and a dashboard under random clients for hours, and a
// Tinker server and an OpenEnv server under a training run each, and watches their memory. Prints a
// line every ten minutes and a table at the end; exits with 1 if a process ended, a request failed
// or one was not answered within two minutes. Linux.
// usage: npm run build && node scripts/soak.mjs [--hours 24] [--clients 6] [--pause 300] [--folder DIR]
import { spawn } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    hours: { type: "string", default: "24" },
    clients: { type: "string", default: "6" },
    pause: { type: "string", default: "300" },
    folder: { type: "string" },
  },
});
/** Mean milliseconds between two requests of a client. */
const pause = Number(values.pause);
const TIMEOUT_MS = 120_000;
const bin = fileURLToPath(new URL("../dist/app/cli/bin.js", import.meta.url));
const envs = new URL("../dist/envs.js", import.meta.url).href;
const folder = values.folder ?? mkdtempSync(join(tmpdir(), "soak-"));
mkdirSync(folder, { recursive: true });

/** Blackjack whose steps take time, so that training does not take a whole processor. */
const env = join(folder, "slow-blackjack.js");
writeFileSync(
  env,
  `import { make, PassThroughWrapper } from ${JSON.stringify(envs)};
class Slow extends PassThroughWrapper {
  async step(action) {
    await new Promise((resolve) => setTimeout(resolve, ${pause}));
    return this.env.step(action);
  }
}
export default () => new Slow(make("Blackjack-v1"));
`,
);

const processes = [];
const failures = [];
const fail = (what) => {
  failures.push(what);
  appendFileSync(join(folder, "failures.log"), `${new Date().toISOString()} ${what}\n`);
};
const ending = new AbortController();
process.once("exit", () => {
  for (const { child } of processes) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

/** Starts a command; resolves with the first match of `ready` in its output. */
function start(name, args, ready) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [bin, ...args], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
    processes.push({ name, child, memory: [] });
    let out = "";
    const read = (data) => {
      appendFileSync(join(folder, `${name}.log`), data);
      out = (out + data).slice(-10_000);
      const match = ready.exec(out);
      if (match !== null) resolve(match[1]);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("exit", (status, signal) => {
      if (!ending.signal.aborted) fail(`${name} ended with ${status ?? signal}: ${out.slice(-500)}`);
      resolve(undefined);
    });
  });
}

const random = (count) => Math.floor(Math.random() * count);
const pick = (list) => list[random(list.length)];
const WORDS = "total dealer shows hand card hit stay score night river {quoted} 漢字 é 17".split(" ");
const text = (count) => Array.from({ length: 1 + random(count) }, () => pick(WORDS)).join(" ");

const counts = { requests: 0, sessions: 0, aborted: 0, refused: 0, slowestMs: 0 };

/** Sends a request; `expected` lists the statuses that are right. */
async function send(url, { body, headers = {}, expected = [200], abortMs } = {}) {
  counts.requests++;
  const begin = performance.now();
  const signal = AbortSignal.timeout(abortMs ?? TIMEOUT_MS);
  try {
    const response = await fetch(url, {
      method: body === undefined ? "GET" : "POST",
      headers: { "content-type": "application/json", ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
    const answer = await response.text();
    if (!expected.includes(response.status)) fail(`${url} answered ${response.status}: ${answer.slice(0, 300)}`);
    if (response.status >= 400) counts.refused++;
    counts.slowestMs = Math.max(counts.slowestMs, performance.now() - begin);
    return answer;
  } catch (error) {
    if (ending.signal.aborted) return undefined;
    if (abortMs !== undefined && error.name === "TimeoutError") counts.aborted++;
    else fail(`${url}: ${error.name === "TimeoutError" ? "no answer in two minutes" : error.message}`);
    return undefined;
  }
}

const schema = { type: "object", properties: { action: { enum: ["hit", "stay"] } }, required: ["action"] };
const tools = ["hit", "stay"].map((name) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: {} } },
}));

/** A random chat request: plain, streamed, with a schema or a tool, or one that must be refused. */
function randomChat(messages) {
  const body = { model: "embedded", messages, max_tokens: 1 + random(24) };
  const kind = random(12);
  if (kind === 0) return { body: { ...body, stream: true } };
  if (kind === 1) return { body: { ...body, stream: true, max_tokens: 64 }, abortMs: 1 + random(60) };
  if (kind === 2)
    return {
      body: {
        ...body,
        max_tokens: 64,
        response_format: { type: "json_schema", json_schema: { name: "move", schema } },
      },
    };
  if (kind === 3) return { body: { ...body, max_tokens: 64, tools, tool_choice: "required" } };
  if (kind === 4) return { body: { ...body, max_tokens: -1 }, expected: [400] };
  return { body };
}

/** Conversations of some turns on the model server. */
async function chat(url) {
  const messages = [{ role: "user", content: text(random(8) === 0 ? 150 : 20) }];
  for (let turn = 0; turn <= random(4); turn++) {
    await send(`${url}/chat/completions`, randomChat(messages));
    messages.push({ role: "assistant", content: text(4) }, { role: "user", content: text(10) });
    await sleep(random(2 * pause));
  }
}

/** A session of some turns on the gateway; some are left without an end. */
async function playSession(url) {
  const answer = await send(`${url}/sessions`, { body: {}, expected: [201] });
  if (answer === undefined) return;
  const { id, baseURL } = JSON.parse(answer);
  counts.sessions++;
  const messages = [{ role: "system", content: "Play Blackjack: hit or stay?" }];
  for (let turn = 0; turn <= random(4); turn++) {
    messages.push({ role: "user", content: `Total ${4 + random(18)}, the dealer shows ${1 + random(10)}. ${text(6)}` });
    await send(`${baseURL}/chat/completions`, randomChat(messages));
    messages.push({ role: "assistant", content: pick(["hit", "stay"]) });
    await sleep(random(2 * pause));
  }
  if (random(20) === 0) return;
  await send(`${url}/sessions/${id}/end`, { body: { reward: random(3) - 1 } });
}

/** What the dashboard's page asks for. */
async function watch(link) {
  const { origin, searchParams } = new URL(link);
  const headers = { authorization: `Bearer ${searchParams.get("token")}` };
  const get = (path) => send(origin + path, { headers });
  const list = await get("/api/runs");
  for (const { id } of list === undefined ? [] : JSON.parse(list).runs) {
    const run = `/api/runs/${encodeURIComponent(id)}`;
    await get(run);
    await get(`${run}/series?name=rollout/ep_rew_mean&name=entropy&x=turns&points=800`);
    await get(`${run}/episodes?limit=100`);
  }
  await sleep(10 * pause);
}

/** Repeats an action until the end. */
async function repeat(action) {
  while (!ending.signal.aborted) await action();
}

const isRunning = ({ exitCode, signalCode }) => exitCode === null && signalCode === null;

function readMemory(pid) {
  const line = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return line === null ? undefined : Number(line[1]) / 1024;
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

const serve = ["serve", "-m", "embedded", "--port", "0", "--threads", "1"];
const serveUrl = await start("serve", serve, /at (http:\S+)/);
const tinkerUrl = await start("tinker", [...serve, "--tinker", "--tinker-folder", "tinker"], /BASE_URL=(\S+)/);
const envsUrl = await start("envs", ["envs", "serve", env, "--port", "0"], /(http:\S+)/);
/** Starts a run that ends with the soak. */
async function startTraining(name, environment, options) {
  const length = ["--turns", "1000000000", "--num-envs", "32", "--save-steps", "5"];
  const agent = ["--action-mode", "choices", "--sft-warm-start", "none"];
  await start(
    name,
    ["train", environment, ...length, ...agent, ...options, "--output", `runs/${name}`],
    /update (\d+)/,
  );
}
const local = ["--device", "cpu", "--threads", "1"];
await startTraining("train", env, local);
await startTraining("tinker-train", env, ["--backend", "tinker", "--base-url", tinkerUrl, "--model", "embedded"]);
await startTraining("envs-train", `openenv:${envsUrl}`, local);
const gateway = ["gateway", "--turns", "1000000000", "--port", "0", "--save-steps", "5", "--device", "cpu"];
const gatewayUrl = await start(
  "gateway",
  [
    ...gateway,
    "--threads",
    "1",
    "--session-timeout",
    "60",
    "--max-completion-length",
    "64",
    "--output",
    "runs/gateway",
  ],
  /Gateway: +(http:\S+?)(?:\/v1)?\s/,
);
const link = await start("dashboard", ["dashboard", "runs", "--port", "0"], /(http:\S+token=\S+)/);
if ([serveUrl, tinkerUrl, envsUrl, gatewayUrl, link].includes(undefined) || failures.length > 0) {
  console.error(failures.join("\n"));
  process.exit(1);
}

const clients = Array.from({ length: Number(values.clients) }, () => [
  repeat(() => playSession(gatewayUrl)),
  repeat(() => chat(serveUrl)),
]).flat();
clients.push(repeat(() => watch(link)));

const minutes = Number(values.hours) * 60;
for (let minute = 1; minute <= minutes; minute++) {
  await sleep(60_000);
  for (const { child, memory } of processes) {
    const megabytes = isRunning(child) ? readMemory(child.pid) : undefined;
    if (megabytes !== undefined) memory.push(megabytes);
  }
  const now = processes.map(({ name, memory }) => `${name} ${memory.at(-1)?.toFixed(0) ?? "ended"} MB`).join(", ");
  const line = `minute ${minute}: ${now}; ${JSON.stringify(counts)}; ${failures.length} failures`;
  appendFileSync(join(folder, "soak.log"), `${line}\n`);
  if (minute % 10 === 0) console.log(line);
}
ending.abort();
await Promise.all(clients);
// Runs were started after the servers that they use, and stop before them.
for (const { name, child } of processes.toReversed()) {
  if (!isRunning(child)) continue;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const killer = setTimeout(() => child.kill("SIGKILL"), TIMEOUT_MS);
  await ended;
  clearTimeout(killer);
  if (child.signalCode === "SIGKILL") fail(`${name} did not stop in two minutes`);
}

console.log("\n| process | MB after a tenth | median of the second quarter | of the last | highest |");
console.log("| --- | --- | --- | --- | --- |");
for (const { name, memory } of processes) {
  const quarter = Math.ceil(memory.length / 4);
  const cells = [
    memory[Math.floor(memory.length / 10)],
    median(memory.slice(quarter, 2 * quarter)),
    median(memory.slice(-quarter)),
    Math.max(...memory),
  ];
  console.log(`| ${name} | ${cells.map((cell) => cell?.toFixed(0) ?? "-").join(" | ")} |`);
}
console.log(
  `\n${JSON.stringify(counts)}\n${failures.length} failures${failures
    .slice(0, 10)
    .map((each) => `\n${each}`)
    .join("")}`,
);
process.exit(failures.length === 0 ? 0 : 1);
