import { existsSync } from "node:fs";
import { boolean } from "../../core/settings.js";
import type { TrainResult } from "../../rl/train/index.js";
import type { RunCommand } from "../runs/find-run-command.js";
import type { RunHooks } from "../runs/open-run.js";
import { formatCommandLine, quoteArg } from "./command-line.js";
import { dashboardRoot, startDashboardProcess } from "./dashboard-process.js";
import { reportDownloads } from "./display/report-downloads.js";
import { TrainingReport } from "./display/report-training.js";
import { SIGINT_EXIT_CODE } from "./interrupt-handler.js";
import type { Reporter } from "./reporter.js";

/** Option of commands that train: a dashboard of the run. */
export const dashboardOption = boolean({
  description: "Show the run in the browser while it trains (llamagym dashboard).",
  changeable: "resume",
});

/** What a command shows a run with. */
export interface RunDisplay {
  readonly reporter: Reporter;
  readonly report: TrainingReport;
  /** Command line that resumes the run. */
  readonly resumeCommand: string;
}

interface TrainedRun {
  readonly folder: string;
  close(): Promise<void>;
}

interface TrainRunOptions<Run extends TrainedRun> {
  readonly command: RunCommand;
  /** Whether the dashboard shows the run; undefined for a command without it. */
  readonly dashboard?: boolean;
  readonly open: (hooks: Required<RunHooks>) => Promise<Run>;
  readonly train: (run: Run, display: RunDisplay) => Promise<void>;
}

/**
 * Opens a run, trains it and closes it, while showing downloads, progress and warnings; the first
 * Ctrl-C saves and ends it. Returns the exit status.
 */
export async function trainRun<Run extends TrainedRun>(
  reporter: Reporter,
  { command, dashboard: showsDashboard, open, train }: TrainRunOptions<Run>,
): Promise<number> {
  const downloads = reportDownloads(reporter);
  const report = new TrainingReport(reporter);
  const run = await open({
    onDownload: downloads.update,
    onWarning: reporter.warn,
    onInfo: reporter.info,
    trackers: [report.tracker],
  });
  downloads.end();
  const dashboard = showsDashboard === true ? startDashboardProcess(run.folder, reporter) : undefined;
  if (showsDashboard === false)
    reporter.info(`Watch it in the browser: ${formatCommandLine(`dashboard ${quoteArg(dashboardRoot(run.folder))}`)}`);
  const resumeCommand = formatCommandLine(`${command} --resume ${quoteArg(run.folder)}`);
  reporter.handleInterrupts(
    `Finishing this update, then saving. Press Ctrl-C again to quit now and lose it; resume with: ${resumeCommand}`,
  );
  reporter.resumeCommand = resumeCommand;
  try {
    await train(run, { reporter, report, resumeCommand });
  } catch (error) {
    report.end();
    if (existsSync(run.folder))
      reporter.info(`The run is saved in ${run.folder}. Resume from its last checkpoint with: ${resumeCommand}`);
    throw error;
  } finally {
    report.end();
    await run.close();
    dashboard?.stop();
  }
  return reporter.signal.aborted ? SIGINT_EXIT_CODE : 0;
}

/** A run whose training has ended. */
export interface EndedRun {
  readonly hasCheckpoint: boolean;
  readonly resumedAt: number;
  readonly serviceUsage: string | undefined;
  /** Whether the service has computed as many tokens as it may. */
  readonly isExhausted: boolean;
  saveModel(): Promise<string>;
}

/**
 * Saves what a run has trained and prints how an interrupted one resumes; `length` names the
 * options that extend a complete one. Returns the path of the result; undefined if the run was
 * interrupted.
 */
export async function saveTrained(
  run: EndedRun,
  { state: { updates }, isInterrupted, stoppedEarly, latestCheckpoint }: TrainResult,
  { reporter, report, resumeCommand }: RunDisplay,
  length: string,
): Promise<string | undefined> {
  report.end();
  if (isInterrupted && latestCheckpoint === undefined) {
    reporter.print(`Stopped before the first update. Start again with: ${resumeCommand}`);
    return undefined;
  }
  const path = await run.saveModel();
  if (run.serviceUsage !== undefined) reporter.print(run.serviceUsage);
  if (isInterrupted) {
    const trained = updates > 0 ? `after update ${updates}` : "before the first update";
    const limit = run.isExhausted ? " at the limit of service tokens" : "";
    const more = run.isExhausted ? " --max-service-tokens N" : "";
    reporter.print(`Stopped and saved ${trained}${limit}. Resume with: ${resumeCommand}${more}`);
    return undefined;
  }
  if (stoppedEarly !== undefined) reporter.print(`Ended early, after update ${updates}: ${stoppedEarly}.`);
  else if (run.hasCheckpoint && updates === run.resumedAt)
    reporter.print(`The run was already complete. Extend it with ${length}.`);
  return path;
}

/** Prints where a model was saved, and how to try it; nothing for undefined. */
export function printSaved(path: string | undefined, reporter: Pick<Reporter, "print">): void {
  if (path !== undefined)
    reporter.print(`Saved ${path}.\nTry it: ${formatCommandLine(`generate --model ${quoteArg(path)}`)}`);
}
