// Compares lm-evaluation-harness, over /v1/completions, with the log-probabilities of /v1/score on
// 200 items of two choices. usage: npm run build && node scripts/lm-eval.mjs [PYTHON] PYTHON has
// lm-evaluation-harness (pip install "lm_eval[api]" transformers)
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ITEMS = 200;
const CHOICES = ["hit", "stay"];
const [python = "python3"] = process.argv.slice(2);
const path = (relative) => fileURLToPath(new URL(`../${relative}`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "lm-eval-"));

/** Hands of Blackjack with the answer of a player who stays from 17 on. */
const items = Array.from({ length: ITEMS }, (_, i) => {
  const [total, dealer] = [4 + (i % 18), 1 + (Math.floor(i / 18) % 10)];
  return {
    question: `Your cards add up to ${total}, the dealer shows ${dealer}. hit or stay?`,
    gold: total < 17 ? 0 : 1,
  };
});
const TASK = `task: blackjack_hands
dataset_path: json
dataset_kwargs:
  data_files:
    test: ${join(folder, "items.jsonl")}
output_type: multiple_choice
test_split: test
doc_to_text: "{{question}}"
doc_to_target: gold
doc_to_choice: ${JSON.stringify(CHOICES)}
metric_list:
  - metric: acc
`;

function evaluateWithHarness(url) {
  writeFileSync(join(folder, "items.jsonl"), items.map((item) => `${JSON.stringify(item)}\n`).join(""));
  writeFileSync(join(folder, "blackjack_hands.yaml"), TASK);
  const model = { model: "embedded", base_url: `${url}/completions`, num_concurrent: 4, tokenized_requests: false };
  const args = Object.entries({ ...model, tokenizer_backend: "huggingface", tokenizer: path("models/llamagym-1m") });
  const command = [
    "-m",
    "lm_eval",
    "--model",
    "local-completions",
    "--model_args",
    args.map((arg) => arg.join("=")).join(","),
  ];
  const options = [
    "--tasks",
    "blackjack_hands",
    "--include_path",
    folder,
    "--output_path",
    join(folder, "out"),
    "--log_samples",
  ];
  const env = { ...process.env, HF_HUB_OFFLINE: "1", HF_HOME: folder, OPENAI_API_KEY: "none" };
  const { status, stderr } = spawnSync(python, [...command, ...options], { encoding: "utf8", env });
  if (status !== 0) throw new Error(`lm_eval failed:\n${stderr.slice(-3000)}`);
  const files = readdirSync(join(folder, "out"), { recursive: true }).map((name) => join(folder, "out", name));
  const read = (part) =>
    readFileSync(
      files.find((file) => file.includes(part)),
      "utf8",
    );
  const samples = read("samples_")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const results = JSON.parse(read("results_")).results.blackjack_hands;
  const byItem = samples
    .sort((a, b) => a.doc_id - b.doc_id)
    .map(({ resps }) => resps.map(([[logProb]]) => Number(logProb)));
  return { accuracy: results["acc,none"], logProbs: byItem };
}

async function evaluateWithScore(url) {
  const body = {
    items: items.map(({ question }) => ({ prompt: question, candidates: CHOICES.map((text) => ` ${text}`) })),
  };
  const headers = { "content-type": "application/json" };
  const { data } = await (await fetch(`${url}/score`, { method: "POST", headers, body: JSON.stringify(body) })).json();
  const logProbs = data.map((candidates) => candidates.map(({ logprob }) => logprob));
  const isRight = ([hit, stay], i) => (stay > hit ? 1 : 0) === items[i].gold;
  return { accuracy: logProbs.filter(isRight).length / items.length, logProbs };
}

const server = spawn(process.execPath, [path("dist/app/cli/bin.js"), "serve", "--model", "embedded", "--port", "0"]);
try {
  const [line] = await once(createInterface({ input: server.stdout }), "line");
  const url = line.replace(/^.* at /, "");
  const score = await evaluateWithScore(url);
  const harness = evaluateWithHarness(url);
  const differences = score.logProbs.flatMap((row, i) =>
    row.map((value, j) => Math.abs(value - harness.logProbs[i][j])),
  );
  console.log(`items: ${items.length}, accuracy of lm_eval: ${harness.accuracy}, of /v1/score: ${score.accuracy}`);
  console.log(`largest difference of a log-probability: ${Math.max(...differences).toExponential(1)}`);
  if (harness.accuracy !== score.accuracy || !(Math.max(...differences) < 1e-3)) process.exitCode = 1;
} finally {
  server.kill("SIGINT");
  await once(server, "exit");
  rmSync(folder, { recursive: true });
}
