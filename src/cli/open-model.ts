import { AutoModelForCausalLM } from "../generation/auto.js";
import type { LanguageModel } from "../generation/language-model.js";
import type { openingOptions } from "./generation-options.js";
import type { OptionValues } from "./options.js";
import { DownloadBars } from "./progress.js";

/** Opens the model that a command was given, with bars for what is downloaded. */
export async function openModel(
  model: string,
  { adapter, revision, device, threads }: OptionValues<typeof openingOptions>,
): Promise<LanguageModel> {
  const bars = new DownloadBars();
  try {
    const opened = await AutoModelForCausalLM.fromPretrained(model, {
      adapter,
      revision,
      device,
      threads,
      onProgress: bars.update,
    });
    // The first reply then waits no longer for the session.
    void opened.sampler().catch(() => {});
    return opened;
  } finally {
    bars.end();
  }
}

export function hasChatTemplate({ tokenizer }: LanguageModel): boolean {
  return tokenizer.chatTemplates.size > 0;
}
