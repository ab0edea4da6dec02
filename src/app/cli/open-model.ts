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
    if (adapter !== undefined && (await isServiceModelFolder(adapter)))
      return await openSavedTinkerModel(adapter, {
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

export function hasChatTemplate({ tokenizer }: LanguageModel): boolean {
  return tokenizer.chatTemplates.size > 0;
}
