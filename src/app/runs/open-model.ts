import { openTrainable, type LanguageModel } from "../../generation/index.js";
import type { DownloadProgress } from "../../models/files/index.js";
import {
  parseGradientCheckpointing,
  parseLoraOptions,
  parseQuantizeBits,
  modelSettings,
  type tuningSettings,
} from "../../models/index.js";
import { selectSettings, type Settings } from "../../core/settings.js";
import { openTinkerModel, readServiceModel, type serviceSettings } from "../../tinker/index.js";
import { parseServiceModules } from "./check-service.js";
import type { TrainConfig } from "./run-settings.js";

/** Settings of a run that concern its model. */
type ModelConfig = Settings<typeof modelSettings & typeof tuningSettings & typeof serviceSettings> &
  Pick<TrainConfig, "seed">;

const { checkMemory: _, ...openSettings } = modelSettings;

/**
 * Opens the model of a run with its trainable parameters. @throws as `openTrainable` and
 * `openTinkerModel`.
 */
export async function openRunModel(
  config: ModelConfig,
  {
    valueHead,
    onDownload,
    onWarning,
  }: {
    readonly valueHead: Parameters<typeof openTrainable>[1]["valueHead"];
    readonly onDownload?: (progress: DownloadProgress) => void;
    readonly onWarning?: (message: string) => void;
  },
): Promise<LanguageModel> {
  if (config.backend === "tinker") return openServiceModel(config, { onDownload, onWarning });
  const { model, quantize, gradientCheckpointing, ...options } = selectSettings(openSettings, config);
  const { tuning, seed } = config;
  return openTrainable(model, {
    ...options,
    quantize: parseQuantizeBits(quantize),
    gradientCheckpointing: parseGradientCheckpointing(gradientCheckpointing),
    peftConfig: tuning === "full" ? null : { ...parseLoraOptions(config), seed },
    valueHead,
    onProgress: onDownload,
  });
}

async function openServiceModel(
  { model, baseUrl, adapter, tokenizer, maxServiceTokens, r, seed, targetModules, splitSpecialTokens }: ModelConfig,
  {
    onDownload,
    onWarning,
  }: {
    readonly onDownload?: (progress: DownloadProgress) => void;
    readonly onWarning?: (message: string) => void;
  },
): Promise<LanguageModel> {
  return openTinkerModel(model, {
    baseUrl: baseUrl!,
    ...parseServiceModules(targetModules),
    rank: r,
    seed,
    tokenizer,
    splitSpecialTokens,
    maxServiceTokens,
    saved: adapter === undefined ? undefined : await readServiceModel(adapter),
    onProgress: onDownload,
    onWarning,
  });
}
