import { openTrainable } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import type { DownloadProgress } from "../../models/files/index.js";
import { parseQuantizeBits } from "../../models/model-settings.js";
import type { TrainConfig } from "./run-settings.js";

/** Settings of a run that concern its model. */
type ModelConfig = Pick<
  TrainConfig,
  | "model"
  | "adapter"
  | "device"
  | "threads"
  | "quantize"
  | "backwardPrecision"
  | "tuning"
  | "r"
  | "loraAlpha"
  | "loraDropout"
  | "targetModules"
  | "seed"
>;

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
  const { model, adapter, device, threads, quantize, backwardPrecision, tuning, seed } = config;
  const { r, loraAlpha, loraDropout, targetModules: names } = config;
  const targetModules = names === "all-linear" ? names : names.split(",").map((name) => name.trim());
  return openTrainable(model, {
    adapter,
    device,
    threads,
    quantize: parseQuantizeBits(quantize),
    backwardPrecision,
    peftConfig: tuning === "full" ? null : { r, loraAlpha, loraDropout, targetModules, seed },
    valueHead,
    onProgress: onDownload,
  });
}
