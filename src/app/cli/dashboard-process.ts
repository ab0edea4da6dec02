import { spawn } from "node:child_process";
import { basename, dirname, resolve } from "node:path";
import { createInterface } from "node:readline";
import { BIN_PATH } from "./command-line.js";
import { openBrowser } from "./open-browser.js";
import type { Reporter } from "./reporter.js";

/** Folder of runs by default; its other runs are shown as well. */
const RUNS_FOLDER = "runs";

/**
 * Returns the folder that shows a run: the default folder of runs with the others, or the run's
 * own.
 */
export function dashboardRoot(folder: string): string {
  const parent = dirname(folder);
  return basename(resolve(parent)) === RUNS_FOLDER ? parent : folder;
}

/**
 * Starts the dashboard of a run in a separate process, so that it does not slow the training,
 * prints its link and opens it in the browser where there is a terminal. The process ends with this
 * one.
 */
export function startDashboardProcess(folder: string, reporter: Reporter): { readonly stop: () => void } {
  // Detached: Ctrl-C stops the training, which ends the dashboard when it is done.
  const child = spawn(process.execPath, [BIN_PATH, "dashboard", dashboardRoot(folder), "--port", "0"], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
    detached: true,
  });
  child.on("error", (error) => reporter.warn(`The dashboard did not start: ${error.message}`));
  createInterface({ input: child.stdout! }).on("line", (line) => {
    reporter.print(line);
    const url = /http:\S+$/.exec(line)?.[0];
    if (url !== undefined && reporter.isInteractive) openBrowser(url);
  });
  child.unref();
  child.channel?.unref();
  return {
    stop: () => {
      if (child.connected) child.disconnect();
      child.stdout?.destroy();
    },
  };
}
