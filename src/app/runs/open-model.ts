import { AutoModelForCausalLMWithValueHead, openTrainable, type LanguageModel } from "../../generation/index.js";
import type { DownloadProgress } from "../../models/files/index.js";
import {
  EMBEDDED_MODEL,
  parseGradientCheckpointing,
  parseLoraOptions,
  parseQuantizeBits,
  modelSettings,
  tuningSettings,
} from "../../models/index.js";
import type { ValueHeadConfig } from "../../engine/nn/index.js";
import { selectSettings, type Settings } from "../../core/settings.js";
import { openSavedTinkerModel, openTinkerModel, type serviceSettings } from "../../tinker/index.js";
import { parseServiceModules } from "./check-service.js";
import type { TrainConfig } from "./run-settings.js";

/** Settings of a run that concern its model. */
type ModelConfig = Settings<typeof modelSettings & typeof tuningSettings & typeof serviceSettings> &
  Pick<TrainConfig, "seed">;

const { checkMemory: _, ...openSettings } = modelSettings;

/** What opening the model of a run needs in addition to its settings. */
interface OpenOptions {
  /** The value head of an algorithm with a critic. */
  readonly valueHead: Partial<ValueHeadConfig> | null | "saved";
  readonly onDownload?: (progress: DownloadProgress) => void;
  readonly onWarning?: (message: string) => void;
}

/**
 * Opens the model of a run with its trainable parameters. @throws as `openTrainable` and
 * `openTinkerModel`.
 */
export async function openRunModel(config: ModelConfig, options: OpenOptions): Promise<LanguageModel> {
  if (config.backend === "tinker") return openServiceModel(config, options);
  const { model, quantize, gradientCheckpointing, ...others } = selectSettings(openSettings, config);
  const { tuning, seed } = config;
  const opened = await openTrainable(model, {
    ...others,
    quantize: parseQuantizeBits(quantize),
    gradientCheckpointing: parseGradientCheckpointing(gradientCheckpointing),
    peftConfig: tuning === "full" ? null : { ...parseLoraOptions(config), seed },
    valueHead: options.valueHead,
    onProgress: options.onDownload,
  });
  const { adapter } = opened.causalLM;
  if (config.adapter !== undefined && adapter !== undefined)
    for (const name of ADAPTER_SETTINGS)
      if (config[name] !== tuningSettings[name].default && config[name] !== adapter.config[name])
        options.onWarning?.(
          `\`${name}\` ${config[name]} is not used: training continues the adapter ${config.adapter}, whose \`${name}\` is ${adapter.config[name]}. Remove one of them.`,
        );
  return opened;
}

/** Settings of new adapters, in which a given one may differ. */
const ADAPTER_SETTINGS = ["r", "loraAlpha", "loraDropout", "useDora", "bias"] as const;

async function openServiceModel(
  { model, baseUrl, adapter, tokenizer, maxServiceTokens, critic, r, seed, targetModules, ...config }: ModelConfig,
  { valueHead, onDownload, onWarning }: OpenOptions,
): Promise<LanguageModel> {
  const options = {
    baseUrl: baseUrl!,
    ...parseServiceModules(targetModules),
    rank: r,
    seed,
    tokenizer,
    splitSpecialTokens: config.splitSpecialTokens,
    maxServiceTokens,
    critic:
      valueHead === null || valueHead === "saved"
        ? undefined
        : await openCritic(critic, { valueHead, seed, onDownload }),
    onProgress: onDownload,
    onWarning,
  };
  try {
    return await (adapter === undefined ? openTinkerModel(model, options) : openSavedTinkerModel(adapter, options));
  } catch (error) {
    await options.critic?.close();
    throw error;
  }
}

/** Opens a critic: all weights of the embedded model are trained, and an adapter of others. */
async function openCritic(
  critic = EMBEDDED_MODEL,
  {
    valueHead,
    seed,
    onDownload,
  }: {
    readonly valueHead: Partial<ValueHeadConfig>;
    readonly seed: number;
    readonly onDownload: OpenOptions["onDownload"];
  },
): Promise<LanguageModel> {
  return AutoModelForCausalLMWithValueHead.fromPretrained(critic, {
    peftConfig: critic === EMBEDDED_MODEL ? null : { seed },
    valueHead,
    onProgress: onDownload,
  });
}
