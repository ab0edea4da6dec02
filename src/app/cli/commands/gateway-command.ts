import { existsSync } from "node:fs";
import { defineSettings, number, text, type GivenSettings, type SettingTable } from "../../../core/settings.js";
import { gatewaySettings } from "../../gateway/gateway-settings.js";
import { gatewayRunSettingsOf, resumeGatewayRun, startGatewayRun, type GatewayRun } from "../../runs/gateway-run.js";
import { readRunConfig } from "../../../rl/train/run-config.js";
import { findRunOfAdapter } from "../../runs/run-folder.js";
import type { TrainOptions } from "../../runs/run-settings.js";
import { formatCommandLine, quoteArg } from "../command-line.js";
import { describeStart } from "../display/describe-start.js";
import { reportDownloads } from "../display/report-downloads.js";
import { TrainingReport } from "../display/report-training.js";
import { SIGINT_EXIT_CODE } from "../interrupt-handler.js";
import { readRubric } from "../options/read-rubric.js";
import { timestampedFolder } from "../options/default-output.js";
import { defineCommand, type Command } from "../options/define-command.js";
import { describeRunDefaults } from "../options/describe-defaults.js";
import { listenOptions } from "../options/listen-options.js";
import { loadArgAlgorithm } from "../options/load-arg-algorithm.js";
import type { Reporter } from "../reporter.js";
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
    ],
    options: { ...commandOptions, ...settings },
    showsCommonOptions: true,
    notes: ["The batch size counts turns for PPO and episodes for the other algorithms."],
    describeDefaults: (table, values) =>
      describeRunDefaults(table, Object.keys(settings), { model: values.model as string | undefined, algorithm }),
    run: async (given, reporter) => trainGateway(given as Args, reporter),
  });
}

async function trainGateway(args: Args, reporter: Reporter): Promise<number> {
  const { output, resume, host, port = 8080, sessionTimeout: sessionTimeoutSeconds, ...others } = args;
  const { apiKey = process.env.LLAMAGYM_API_KEY, ...settings } = others;
  const downloads = reportDownloads(reporter);
  const report = new TrainingReport(reporter);
  const hooks = {
    server: { host, port, apiKey, sessionTimeoutSeconds },
    trackers: [report.tracker],
    onDownload: downloads.update,
    onWarning: reporter.warn,
    onInfo: reporter.info,
  };
  const run =
    resume === undefined
      ? await startNewRun(settings, output ?? timestampedFolder("gateway"), hooks)
      : await resumeGatewayRun(resume, settings, hooks);
  downloads.end();
  const resumeCommand = formatCommandLine(`gateway --resume ${quoteArg(run.folder)}`);
  reporter.handleInterrupts(`Saving. Press Ctrl-C again to quit now; resume with: ${resumeCommand}`);
  reporter.resumeCommand = resumeCommand;
  reporter.print(describeStart(run, "through a gateway"));
  reporter.print(describeGateway(run, apiKey));
  try {
    const result = await run.train({
      onProgress: (event) => report.update(event, run.config.episodes),
      signal: reporter.signal,
    });
    report.end();
    const { updates } = result.state;
    if (result.isInterrupted && updates === 0) {
      reporter.print(`Stopped before the first update. Start again with: ${resumeCommand}`);
    } else {
      const adapter = await run.saveAdapter();
      const stopped = `Stopped and saved after update ${updates}. Resume with: ${resumeCommand}`;
      reporter.print(result.isInterrupted ? stopped : describeResult(run, adapter));
    }
    return result.isInterrupted ? SIGINT_EXIT_CODE : 0;
  } catch (error) {
    report.end();
    if (existsSync(run.folder))
      reporter.info(`The run is saved in ${run.folder}. Resume from its last checkpoint with: ${resumeCommand}`);
    throw error;
  } finally {
    await run.close();
  }
}

async function startNewRun(
  settings: Parameters<typeof startGatewayRun>[0],
  folder: string,
  hooks: Parameters<typeof startGatewayRun>[2],
): Promise<GatewayRun> {
  const { adapter } = settings;
  const base = adapter === undefined ? undefined : (await findRunOfAdapter(adapter))?.model;
  const rubric = await readRubric(settings.judgeRubric);
  const options = { ...(base === undefined ? {} : { model: base }), ...settings, ...rubric };
  return withModelAdvice(options.model ?? "", () => startGatewayRun(options, folder, hooks));
}

function describeGateway({ url }: GatewayRun, apiKey: string | undefined): string {
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
