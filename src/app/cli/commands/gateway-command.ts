import {
  boolean,
  defineSettings,
  number,
  text,
  type GivenSettings,
  type SettingTable,
} from "../../../core/settings.js";
import { formatCount, formatNumber } from "../../../core/format.js";
import { gatewaySettings } from "../../gateway/gateway-settings.js";
import { GatewayTrainer } from "../../gateway/gateway-trainer.js";
import { findRunOfAdapter } from "../../runs/run-folder.js";
import {
  gatewayRunSettingsOf,
  resumeGatewayRun,
  startGatewayRun,
  type GatewayRun,
  type GatewayRunOptions,
} from "../../runs/gateway-run.js";
import type { RunHooks } from "../../runs/open-run.js";
import { readRunConfig } from "../../../rl/train/index.js";
import type { TrainOptions } from "../../runs/run-settings.js";
import { formatCommandLine, quoteArg } from "../command-line.js";
import { describeStart } from "../display/describe-start.js";
import { reportEpisodes } from "../display/report-episodes.js";
import { SIGINT_EXIT_CODE } from "../interrupt-handler.js";
import { openModel } from "../open-model.js";
import { inheritModel } from "../options/inherit-model.js";
import { readRubric } from "../options/read-rubric.js";
import { timestampedFolder } from "../options/default-output.js";
import { defineCommand, type Command } from "../options/define-command.js";
import { describeRunDefaults } from "../options/describe-defaults.js";
import { listenOptions, readApiKey } from "../../server/server-options.js";
import { loadArgAlgorithm } from "../options/load-arg-algorithm.js";
import { UsageError } from "../options/usage-error.js";
import type { Reporter } from "../reporter.js";
import { dashboardOption, saveTrained, trainRun, type RunDisplay } from "../train-run.js";
import { withModelAdvice } from "../with-model-advice.js";

const commandOptions = {
  ...defineSettings(
    {
      output: text({
        short: "o",
        valueName: "folder",
        defaultText: "runs/gateway-TIME",
        description: "Run folder: settings, metrics, checkpoints and the adapter.",
      }),
      resume: text({ valueName: "folder", description: "Resume the run in this folder." }),
      dashboard: dashboardOption,
      eval: boolean({
        description:
          "Play the next sessions greedily, without training, and print their mean return: --episodes of them (1,000).",
      }),
    },
    { group: "Run", common: true },
  ),
  ...listenOptions,
  sessionTimeout: number({
    ...gatewaySettings.sessionTimeoutSeconds,
    valueName: "seconds",
    group: "Server",
    common: true,
  }),
};

/** Default of --episodes with --eval. */
const EVAL_EPISODES = 1000;

type Args = GivenSettings<typeof commandOptions>;

export const gatewayCommand: Command = {
  help: async (args) => (await createCommand(args)).help(args),
  run: async (args, reporter) => (await createCommand(args)).run(args, reporter),
};

/** Creates the command with the options of the algorithm that the arguments name. */
async function createCommand(args: readonly string[]): Promise<Command> {
  const algorithm = await loadArgAlgorithm(args, async ({ resume }) =>
    resume === undefined ? undefined : (await readRunConfig<Partial<TrainOptions>>(resume))?.algorithm,
  );
  const settings = gatewayRunSettingsOf(algorithm);
  return defineCommand<SettingTable>({
    name: "gateway",
    description:
      "Trains a language model on the sessions of agents in other processes, which call it by an OpenAI-compatible URL.",
    examples: [
      { description: "PPO with the embedded model", args: "gateway --turns 50000 --output runs/agent" },
      {
        description: "GRPO with a Hugging Face model; the sessions of a task form groups",
        args: "gateway --algorithm grpo -m Qwen/Qwen2.5-0.5B-Instruct --episodes 5000",
      },
      { description: "Continue an interrupted run", args: "gateway --resume runs/agent" },
      {
        description: "Measure the trained model, greedily",
        args: "gateway --eval --episodes 1000 --adapter runs/agent/adapter",
      },
    ],
    options: { ...commandOptions, ...settings },
    showsCommonOptions: true,
    notes: ["The batch size counts turns for PPO and episodes for the other algorithms."],
    describeDefaults: (table, values) =>
      describeRunDefaults(table, Object.keys(settings), {
        ...(values as Pick<TrainOptions, "model">),
        actionMode: "free",
        algorithm,
      }),
    run: async (given, reporter) => {
      const args = given as Args;
      if (args.eval === true) return evaluateSessions(args, reporter);
      return trainRun(reporter, {
        command: "gateway",
        dashboard: args.dashboard === true,
        open: async (hooks) => openRun(args, hooks),
        train: async (run, display) => trainGateway(run, args, display),
      });
    },
  });
}

/** Plays the sessions of other processes greedily, and prints their mean return. */
async function evaluateSessions(args: Args & GatewayRunOptions, reporter: Reporter): Promise<number> {
  const unused = (["output", "resume", "dashboard"] as const).find((name) => args[name] !== undefined);
  if (unused !== undefined)
    throw new UsageError(`--eval writes no run folder, so --${unused} has no effect. Leave one of them out.`);
  const { host, port = 8080, sessionTimeout, apiKey = readApiKey(), episodes = EVAL_EPISODES } = args;
  const run = args.adapter === undefined ? undefined : await findRunOfAdapter(args.adapter);
  const { model: name = "embedded", quantize, maxCompletionLength } = { ...run, ...args };
  const model = await withModelAdvice(name, async () => openModel(name, { ...args, quantize }, reporter));
  try {
    const server = { host, port, apiKey, sessionTimeoutSeconds: sessionTimeout };
    const onWarning = reporter.warn;
    const trainer = new GatewayTrainer({ ...server, model, episodes, maxCompletionLength, onWarning });
    reporter.print(`Evaluating ${args.adapter ?? name}, greedily, through a gateway: ${episodes} sessions.`);
    reporter.print(describeGateway(await trainer.listen(), apiKey));
    reporter.handleInterrupts("Stopping; nothing is evaluated.");
    const { signal } = reporter;
    const progress = reportEpisodes(reporter, episodes);
    try {
      const result = await trainer.evaluate({ episodes, signal, onProgress: () => progress.add(1) });
      progress.end();
      reporter.print(
        `${formatCount(result.episodes)} sessions: greedy mean return ${formatNumber(result.meanReturn)} ± ${formatNumber(result.standardError)}`,
      );
    } catch (error) {
      if (!signal.aborted) throw error;
      return SIGINT_EXIT_CODE;
    } finally {
      progress.end();
      await trainer.close();
    }
  } finally {
    await model.close();
  }
  return 0;
}

async function openRun(args: Args, hooks: RunHooks): Promise<GatewayRun> {
  const { output, resume, host, port = 8080, sessionTimeout, apiKey, dashboard: _, eval: _eval, ...settings } = args;
  const server = { host, port, apiKey: apiKey ?? readApiKey(), sessionTimeoutSeconds: sessionTimeout };
  if (resume !== undefined) return resumeGatewayRun(resume, settings, { ...hooks, server });
  const given: GatewayRunOptions = settings;
  const options = { ...(await inheritModel(given)), ...given, ...(await readRubric(given.judgeRubric)) };
  const folder = output ?? timestampedFolder("gateway");
  return withModelAdvice(options.model ?? "", async () => startGatewayRun(options, folder, { ...hooks, server }));
}

async function trainGateway(run: GatewayRun, args: Args, display: RunDisplay): Promise<void> {
  const { reporter, report } = display;
  reporter.print(describeStart(run, "through a gateway"));
  reporter.print(describeGateway(run.opened.url, args.apiKey ?? readApiKey()));
  const result = await run.train({
    onProgress: (event) => report.update(event, run.config.episodes),
    signal: reporter.signal,
  });
  const adapter = await saveTrained(run, result, display, "--episodes or --turns");
  if (adapter !== undefined) reporter.print(describeResult(run, adapter));
}

function describeGateway(url: string, apiKey: string | undefined): string {
  const key = apiKey === undefined ? "" : ' -H "authorization: Bearer $LLAMAGYM_API_KEY"';
  return [
    `Gateway: ${url}`,
    `Open a session: curl ${url}/sessions -H "content-type: application/json"${key} -d "{}"`,
  ].join("\n");
}

/** Names the command that serves the result. */
function describeResult({ config }: GatewayRun, adapter: string): string {
  const target =
    config.tuning === "lora"
      ? `--model ${quoteArg(config.model)} --adapter ${quoteArg(`trained=${adapter}`)}`
      : `--model ${quoteArg(adapter)}`;
  return `Saved ${adapter}.\nServe it: ${formatCommandLine(`serve ${target}`)}`;
}
