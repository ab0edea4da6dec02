import { readJson } from "../files/index.js";
import { LlamaGymError } from "../errors.js";
import { knownReturns } from "../envs/index.js";
import { evaluate, type Evaluation } from "../training/evaluate.js";
import { resumeRun, startRun, type Run } from "../training/run.js";
import { trainSettings, type TrainOptions } from "../training/settings.js";
import { envId, envOptions, readEnvOptions } from "./env-options.js";
import { print, table } from "./output.js";
import { UsageError, type OptionTable, type OptionValues } from "./options.js";
import { positionalCommand } from "./positional-command.js";
import { DownloadBars } from "./progress.js";
import { givenSettings, settingOptions } from "./setting-options.js";
import { TrainingDisplay } from "./training-display.js";

const ownOptions = {
  option: envOptions.option,
  config: {
    type: "text",
    alias: "c",
    hint: "file",
    description: "a JSON file of these settings; options here go before",
  },
  output: { type: "text", hint: "folder", description: "the folder that keeps the run; runs/ENV-TIME by default" },
  resume: { type: "text", hint: "folder", description: "go on with the run in this folder" },
  "load-in-8bit": { type: "flag", description: "the same as --quantise 8" },
  "load-in-4bit": { type: "flag", description: "the same as --quantise 4" },
} as const satisfies OptionTable;

const options = { ...settingOptions(trainSettings), ...ownOptions };

type Values = OptionValues<typeof ownOptions> & Readonly<Record<string, unknown>>;

export const trainCommand = positionalCommand(
  "train",
  "Train a language model by reinforcement learning in an environment",
  [{ name: "ENV", description: "an environment, such as blackjack, CartPole-v1, python:ID", required: false }],
  options,
  async (values, [name]) => train(values as unknown as Values, name),
);

async function train(values: Values, name: string | undefined): Promise<number> {
  const bars = new DownloadBars();
  const warn = (message: string) => void process.stderr.write(`${message}\n`);
  const extras = { onDownload: bars.update, warn };
  const run =
    values.resume === undefined
      ? await startRun(await givenOptions(values, name), values.output ?? runFolder(name), extras)
      : await resumeRun(values.resume, settingsOf(values), extras);
  bars.end();
  const interrupt = new AbortController();
  const stopListening = onInterrupt(interrupt, run);
  try {
    return await carryOut(run, interrupt.signal);
  } finally {
    stopListening();
    await run.close();
  }
}

/** Plays before, trains, plays after, and tells what came of it. */
async function carryOut(run: Run, signal: AbortSignal): Promise<number> {
  const { config, agent, makeEnv, folder } = run;
  const measure = async () =>
    config.evalEpisodes === 0 ? undefined : evaluate(agent, makeEnv, { episodes: config.evalEpisodes, signal });
  print(run.resumedAt > 0 ? `Going on with ${folder} after update ${run.resumedAt}.` : `The run is kept in ${folder}.`);
  const before = run.resumedAt > 0 ? undefined : await measure();
  const display = new TrainingDisplay();
  const result = await run.train({
    onWarmStart: (stats) => display.showWarmStart(stats, config.sftSteps),
    onProgress: (event) => display.show(event),
    signal,
  });
  display.end();
  const adapter = await run.saveAdapter();
  if (result.isInterrupted) {
    print(`Stopped and saved. Go on by: llamagym train --resume ${folder}`);
    return 130;
  }
  print(resultTable(config.env, before, await measure()));
  print(
    `The adapter is saved in ${adapter}; play it by: llamagym play ${config.env} --agent --model ${config.model} --adapter ${adapter}`,
  );
  return 0;
}

/** Greedy mean returns before and after, beside what is known of the environment. */
function resultTable(env: string, before: Evaluation | undefined, after: Evaluation | undefined): string {
  const known = knownReturns[env];
  const row = (name: string, value: number, error?: number) => [
    name,
    value.toFixed(3),
    error === undefined ? "" : `± ${error.toFixed(3)}`,
  ];
  const rows = [
    ["policy", "mean return", ""],
    ...(known === undefined ? [] : [row("random actions", known.random)]),
    ...(before === undefined ? [] : [row("before training, greedy", before.meanReturn, before.standardError)]),
    ...(after === undefined ? [] : [row("after training, greedy", after.meanReturn, after.standardError)]),
    ...(known === undefined ? [] : [row("best known", known.best)]),
  ];
  return rows.length === 1 ? "" : table(rows, [1]);
}

async function givenOptions(values: Values, name: string | undefined): Promise<TrainOptions> {
  const file = values.config === undefined ? {} : await readJson(values.config);
  const { version: _, ...fromFile } = file;
  const env = name ?? fromFile.env;
  if (typeof env !== "string")
    throw new UsageError("ENV is missing: name an environment, such as blackjack, or a --config FILE with one.");
  const envOptions = { ...(fromFile.envOptions as object | undefined), ...readEnvOptions(values.option) };
  return { ...fromFile, ...settingsOf(values), env: envId(env), envOptions };
}

/** The settings that options give; --load-in-8bit and --load-in-4bit are other names of one. */
function settingsOf(values: Values): Partial<TrainOptions> {
  const given = givenSettings(trainSettings, values);
  const bits = (["8", "4"] as const).filter((bits) => values[`load-in-${bits}bit`]);
  if (bits.length === 0) return given;
  if (bits.length > 1 || (given.quantise !== undefined && given.quantise !== bits[0]))
    throw new UsageError("Give one of --load-in-8bit, --load-in-4bit and --quantise.");
  return { ...given, quantise: bits[0] };
}

/** runs/blackjack-2026-01-31-120000 */
function runFolder(name = "run"): string {
  const time = new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
  return `runs/${name.toLowerCase().replace(/[^a-z0-9]+/g, "-")}-${time}`;
}

/** The first Ctrl-C ends the run after its update, the second one at once. */
function onInterrupt(interrupt: AbortController, { folder }: Run): () => void {
  const stop = () => {
    if (interrupt.signal.aborted) process.exit(130);
    interrupt.abort(new LlamaGymError("INVALID_STATE", "interrupted"));
    process.stderr.write(
      `\nFinishing this update, then saving. Once more quits at once (llamagym train --resume ${folder} then goes on from the last checkpoint).\n`,
    );
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  return () => {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
  };
}
