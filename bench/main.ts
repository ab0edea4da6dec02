import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Bench } from "./framework.js";
import { measure } from "./measure.js";
import { formatReport } from "./table.js";

const benches: Record<string, () => Promise<{ bench: Bench }>> = {
  engine: () => import("./engine.js"),
  grpo: () => import("./grpo.js"),
  blackjack: () => import("./blackjack.js"),
  pretrained: () => import("./pretrained.js"),
  envs: () => import("./envs.js"),
  scale: () => import("./scale.js"),
  serve: () => import("./serving.js"),
  tinker: () => import("./tinker.js"),
  dashboard: () => import("./dashboard.js"),
  recording: () => import("./recording.js"),
  tools: () => import("./tools.js"),
};

/** The bench that measures learning instead of time; it has its own table. */
const LEARNING = "learning";
/** The bench that counts schemas; it takes a folder. */
const SCHEMAS = "schemas";

const usage = `usage: npm run bench -- NAME [options]

       npm run bench -- schemas DIR [--verbose] [--texts N]

benches: ${[...Object.keys(benches), LEARNING, SCHEMAS].join(", ")}

  --json          one JSON object on standard output instead of a table
  --runs N        measured runs of each case (5); figures are their medians
  --threads N     threads on each side (2)
  --cases A,B     only these cases
  --side SIDE     only ours, or only the peers
  --model FILE    SmolLM2-135M-Instruct as GGUF (LLAMAGYM_BENCH_MODEL)
  --verbose       show what the sides print
  --texts N       check N random texts of the schemas with ajv, too

learning: --runs N seeds, --cases A,B environments, --threads N; arguments after -- go to llamagym train
schemas: the folder has the JSON schemas of MaskBench or of JSON-Schema-Test-Suite`;

function positiveInteger(text: string, option: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`--${option} must be a whole number above 0, not "${text}"`);
  return value;
}

function parseSide(text: string | undefined): "ours" | "peers" | undefined {
  if (text === undefined || text === "ours" || text === "peers") return text;
  throw new Error(`--side must be ours or peers, not "${text}"`);
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: "boolean", default: false },
      runs: { type: "string", default: "5" },
      threads: { type: "string", default: "2" },
      cases: { type: "string" },
      side: { type: "string" },
      model: { type: "string" },
      verbose: { type: "boolean", default: false },
      texts: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help || positionals.length === 0) {
    console.log(usage);
    return;
  }
  const [name, folder] = positionals;
  if (name === SCHEMAS && positionals.length === 2) {
    const { runSchemas } = await import("./schemas.js");
    console.log(runSchemas(folder, values));
    if (values.texts === undefined) return;
    const { checkTexts } = await import("./schema-texts.js");
    console.log(checkTexts(folder, positiveInteger(values.texts, "texts")));
    return;
  }
  if (name === LEARNING) {
    const { measureLearning, formatLearning } = await import("./learning.js");
    const reports = await measureLearning({
      root: fileURLToPath(new URL("../../..", import.meta.url)),
      seeds: positiveInteger(values.runs, "runs"),
      threads: positiveInteger(values.threads, "threads"),
      cases: values.cases?.split(",").map((text) => text.trim()),
      trainArgs: positionals.slice(1),
      progress: (text) => process.stderr.write(`${text}\n`),
    });
    console.log(values.json ? JSON.stringify(reports) : formatLearning(reports));
    return;
  }
  if (positionals.length > 1 || !Object.hasOwn(benches, name)) {
    throw new Error(`no bench "${positionals.join(" ")}"\n\n${usage}`);
  }
  if (values.model !== undefined) process.env.LLAMAGYM_BENCH_MODEL = values.model;
  const { bench } = await benches[name]();
  const report = await measure(bench, {
    // Compiled, this file is bench/.build/bench/main.js.
    root: fileURLToPath(new URL("../../..", import.meta.url)),
    runs: positiveInteger(values.runs, "runs"),
    threads: positiveInteger(values.threads, "threads"),
    side: parseSide(values.side),
    cases: values.cases?.split(",").map((text) => text.trim()),
    verbose: values.verbose,
    progress: (text) => process.stderr.write(`${text}\n`),
  });
  console.log(values.json ? JSON.stringify(report) : formatReport(report, bench.description));
}

// Sides are ended on exit, which a signal would skip.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
