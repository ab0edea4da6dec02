import { LlamaGymError } from "../../core/errors.js";
import { AutoModelForCausalLM } from "../../generation/index.js";
import {
  checkExportFolder,
  resolveExportDtype,
  type ExportDtype,
  type ExportFormat,
} from "../../models/export/index.js";
import { formatModelCard } from "../runs/format-model-card.js";
import { findRunResult, readRunConfig } from "../../rl/train/index.js";
import { checkWritable } from "../runs/run-folder.js";
import { fractionFields } from "../tracking/progress/progress-fields.js";
import { reportDownloads } from "./display/report-downloads.js";
import { withLocalAdapter } from "./local-adapter.js";
import type { Reporter } from "./reporter.js";
import { withModelAdvice } from "./with-model-advice.js";

interface ExportCommandOptions {
  readonly output: string;
  readonly format: ExportFormat;
  readonly model?: string;
  readonly dtype?: ExportDtype;
  readonly overwrite?: boolean;
  /** Whether a model without an adapter is an error. */
  readonly requiresAdapter?: boolean;
}

/** Exports a run's result, an adapter or a model to a new folder, with a model card. */
export async function exportToFolder(given: string, options: ExportCommandOptions, reporter: Reporter): Promise<void> {
  const { output, overwrite = false } = options;
  resolveExportDtype(options);
  await checkWritable(output);
  await checkExportFolder(output, overwrite);
  const result = await findResult(given);
  await withLocalAdapter(result, reporter, async ({ folder, base }) =>
    exportResult(folder, given, base === undefined ? options : { model: base, ...options }, reporter),
  );
}

async function exportResult(
  path: string,
  given: string,
  options: ExportCommandOptions,
  reporter: Reporter,
): Promise<void> {
  const { output, format, model, overwrite = false, requiresAdapter = false } = options;
  const dtype = resolveExportDtype(options);
  const downloads = reportDownloads(reporter);
  const openOptions = { device: "cpu", onProgress: downloads.update } as const;
  const opened = await withModelAdvice(model ?? path, () =>
    model === undefined
      ? AutoModelForCausalLM.fromPretrained(path, openOptions)
      : AutoModelForCausalLM.fromPretrained(model, { ...openOptions, adapter: path }),
  ).finally(() => downloads.end());
  try {
    if (requiresAdapter && opened.causalLM.adapter === undefined)
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        `${path} is a whole model, so there is no adapter to merge. Open it as it is.`,
      );
    const readme = await formatModelCard({ path: given, base: opened.name, format, dtype, output });
    let written = 0;
    const progress = reporter.progress(() => [{ text: "Export", priority: 4 }, ...fractionFields(written)], {
      isTransient: true,
    });
    const onProgress = (share: number): void => {
      written = share;
      progress.update();
    };
    const onWarning = (text: string) => reporter.warn(text);
    await opened
      .export(output, { format, dtype, overwrite, readme, onProgress, onWarning })
      .finally(() => progress.end());
  } finally {
    await opened.close();
  }
}

/** Returns the folder of a run's result, or the given name of an adapter or model. */
async function findResult(name: string): Promise<string> {
  if ((await readRunConfig(name).catch(() => undefined)) === undefined) return name;
  const folder = await findRunResult(name);
  if (folder !== name) return folder;
  throw new LlamaGymError(
    "FILE_NOT_FOUND",
    `The run in ${name} has no adapter/ or model/ yet. Finish it first, or give the adapter of a checkpoint.`,
  );
}
