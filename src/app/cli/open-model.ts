import { AutoModelForCausalLM, type LanguageModel } from "../../generation/index.js";
import type { modelOptions } from "./options/generation-options.js";
import type { GivenSettings } from "../../core/settings.js";
import { isServiceModelFolder, openSavedTinkerModel } from "../../tinker/index.js";
import { parseQuantizeBits } from "../../models/index.js";
import { reportDownloads } from "./display/report-downloads.js";
import type { Reporter } from "./reporter.js";

/** Opens a model and shows the progress of its download. */
export async function openModel(
  model: string,
  {
    adapter,
    revision,
    device,
    threads,
    quantize = "none",
    splitSpecialTokens,
  }: Partial<GivenSettings<typeof modelOptions>>,
  reporter: Reporter,
): Promise<LanguageModel> {
  const downloads = reportDownloads(reporter);
  try {
    const serviceFolder = await findServiceFolder([adapter, model]);
    if (serviceFolder !== undefined)
      return await openSavedTinkerModel(serviceFolder, {
        splitSpecialTokens,
        onProgress: downloads.update,
        onWarning: reporter.warn,
      });
    const opened = await AutoModelForCausalLM.fromPretrained(model, {
      adapter,
      revision,
      device,
      threads,
      quantize: parseQuantizeBits(quantize),
      splitSpecialTokens,
      onProgress: downloads.update,
    });
    // Creates the session in the background, before the first completion needs it.
    void opened.sampler().catch(() => {});
    return opened;
  } finally {
    downloads.end();
  }
}

/** Returns the folder of a model that is on a service; undefined if none of the paths is one. */
async function findServiceFolder(paths: readonly (string | undefined)[]): Promise<string | undefined> {
  for (const path of paths) if (path !== undefined && (await isServiceModelFolder(path))) return path;
  return undefined;
}

export function hasChatTemplate({ tokenizer }: LanguageModel): boolean {
  return tokenizer.chatTemplates.size > 0;
}
