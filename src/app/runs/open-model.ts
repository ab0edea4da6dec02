import { openTrainable, type LanguageModel } from "../../generation/index.js";
import type { DownloadProgress } from "../../models/files/index.js";
import { parseLoraOptions, parseQuantizeBits, modelSettings, type tuningSettings } from "../../models/index.js";
import { selectSettings, type Settings } from "../../core/settings.js";
import type { TrainConfig } from "./run-settings.js";

/** Settings of a run that concern its model. */
type ModelConfig = Settings<typeof modelSettings & typeof tuningSettings> & Pick<TrainConfig, "seed">;

const { checkMemory: _, ...openSettings } = modelSettings;

/** Opens the model of a run with its trainable parameters. @throws as `openTrainable`. */
export async function openRunModel(
  config: ModelConfig,
  {
    valueHead,
    onDownload,
  }: {
    readonly valueHead: Parameters<typeof openTrainable>[1]["valueHead"];
    readonly onDownload?: (progress: DownloadProgress) => void;
  },
): Promise<LanguageModel> {
  const { model, quantize, ...options } = selectSettings(openSettings, config);
  const { tuning, seed } = config;
  return openTrainable(model, {
    ...options,
    quantize: parseQuantizeBits(quantize),
    peftConfig: tuning === "full" ? null : { ...parseLoraOptions(config), seed },
    valueHead,
    onProgress: onDownload,
  });
}
