import { AutoModelForCausalLM } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import type { modelOptions } from "./options/generation-options.js";
import type { OptionValues } from "./options/parse-args.js";
import { DownloadProgressBar } from "./display/download-progress-bar.js";

/** Opens the model that a command was given, with bars for what is downloaded. */
export async function openModel(
  model: string,
  { adapter, revision, device, threads }: OptionValues<typeof modelOptions>,
): Promise<LanguageModel> {
  const progressBar = new DownloadProgressBar();
  try {
    const opened = await AutoModelForCausalLM.fromPretrained(model, {
      adapter,
      revision,
      device,
      threads,
      onProgress: progressBar.update,
    });
    // The first reply then waits no longer for the session.
    void opened.sampler().catch(() => {});
    return opened;
  } finally {
    progressBar.clear();
  }
}

export function hasChatTemplate({ tokenizer }: LanguageModel): boolean {
  return tokenizer.chatTemplates.size > 0;
}
