import { checkServerAccess } from "../core/server-address.js";
import { checkOptions, COUNT, type OptionNames } from "../core/settings.js";
import { system } from "#platform";
import { invalidArgument, LlamaGymError } from "../core/errors.js";
import { LanguageModel } from "../generation/index.js";
import { type ResolveOptions } from "../models/files/index.js";
import { verifyChecksums } from "../core/files/checksums.js";
import { AutoTokenizer, type Tokenizer } from "../models/text/index.js";
import type { ConnectionOptions } from "./client/service-connection.js";
import { ServiceSession } from "./client/service-session.js";
import { LocalCritic } from "./local-critic.js";
import type { ServiceAdapter } from "./client/remote-model.js";
import { probeService, type ServiceTraits } from "./probe-service.js";
import { readServiceModel, type ServiceModel } from "./service-model.js";
import { TinkerPolicy } from "./tinker-policy.js";

/** Options of `openTinkerModel`. */
export interface TinkerModelOptions extends Pick<ConnectionOptions, "maxWaitSeconds" | "onWarning"> {
  /** Address of the service. */
  readonly baseUrl: string;
  /** Default the environment variable TINKER_API_KEY. */
  readonly apiKey?: string;
  /** Rank of the adapter. Default 16. */
  readonly rank?: number;
  /** Seed of the adapter's initial values. Default 0. */
  readonly seed?: number;
  /** Modules with an adapter. By default those of attention and MLP. */
  readonly trainAttn?: boolean;
  readonly trainMlp?: boolean;
  readonly trainUnembed?: boolean;
  /** Hub id or folder of the tokenizer, or a tokenizer. Default the model's. */
  readonly tokenizer?: string | Tokenizer;
  readonly splitSpecialTokens?: boolean;
  /** Context length. Default what the service says, else 32,768. */
  readonly maxPositions?: number;
  /** Tokens that the service may compute; beyond it nothing more is sampled. */
  readonly maxServiceTokens?: number;
  /**
   * Model with a value head in this process, which PPO needs: it estimates the values of states and
   * is trained with the policy. The opened model closes it.
   */
  readonly critic?: LanguageModel | undefined;
  /** A trained model on the service to continue with. */
  readonly saved?: ServiceModel | undefined;
  readonly onProgress?: ResolveOptions["onProgress"];
}

const tinkerOptionNames: OptionNames<TinkerModelOptions> = {
  maxWaitSeconds: true,
  onWarning: Function,
  baseUrl: true,
  apiKey: true,
  rank: true,
  seed: true,
  trainAttn: Boolean,
  trainMlp: Boolean,
  trainUnembed: Boolean,
  tokenizer: true,
  splitSpecialTokens: Boolean,
  maxPositions: COUNT,
  maxServiceTokens: true,
  critic: true,
  saved: true,
  onProgress: Function,
};

const DEFAULT_MAX_POSITIONS = 32_768;
/** Sent where no key is set, for services that need none. */
const NO_KEY = "tml-none";

/** Returns the key in the environment. */
export function readApiKey(): string {
  return system.env.TINKER_API_KEY || NO_KEY;
}

/**
 * Opens a model that a Tinker service samples and trains. Close it when done.
 * @throws SERVICE_FAILED for a service that does not answer, INVALID_ARGUMENT for a model that it
 * does not have, and what loading the tokenizer throws.
 */
export async function openTinkerModel(baseModel: string, options: TinkerModelOptions): Promise<LanguageModel> {
  checkOptions("openTinkerModel", options, tinkerOptionNames);
  const { baseUrl, apiKey = readApiKey(), maxWaitSeconds, onWarning, saved } = options;
  checkConnection(baseUrl, apiKey);
  const tokenizer = await loadTokenizer(baseModel, options);
  const connection = { baseUrl, apiKey, maxWaitSeconds, onWarning };
  const session = await ServiceSession.open(connection);
  try {
    const models = await session.listModels();
    const found = models.find(({ model_name: name }) => name === baseModel);
    if (models.length > 0 && found === undefined)
      throw invalidArgument(
        `${baseUrl} does not have the model ${baseModel}. It has: ${models.map(({ model_name: name }) => name).join(", ")}.`,
      );
    const { maxPositions = found?.max_context_length ?? DEFAULT_MAX_POSITIONS } = options;
    const form = saved?.form ?? toForm(baseModel, options);
    const { maxServiceTokens, critic } = options;
    if (critic !== undefined && critic.policy.valueHead === undefined)
      throw invalidArgument(
        "`critic` must have a value head. Open it with AutoModelForCausalLMWithValueHead.fromPretrained.",
      );
    const policy = new TinkerPolicy({
      session,
      form,
      vocabSize: tokenizer.vocabSize,
      maxPositions,
      saved,
      maxServiceTokens,
      critic: critic && new LocalCritic(critic, tokenizer),
      probe: async () => {
        const traits = await probeService(connection, form.baseModel);
        if (traits.reduction === undefined)
          onWarning?.(
            `${baseUrl} does not report the norm of gradients, so that it is not known whether it averages losses. ` +
              "maxGradNorm may clip more or less than it says.",
          );
        return traits;
      },
    });
    return new LanguageModel(policy, tokenizer, { name: baseModel });
  } catch (error) {
    await session.close();
    throw error;
  }
}

/**
 * Opens the trained model that `savePretrained` has saved in a folder, on the service that trained
 * it or another one.
 * @throws as `openTinkerModel`, FILE_NOT_FOUND and FILE_CORRUPT.
 */
export async function openSavedTinkerModel(
  folder: string,
  options: Partial<TinkerModelOptions> = {},
): Promise<LanguageModel> {
  await verifyChecksums(folder);
  const saved = await readServiceModel(folder);
  const { baseUrl = saved.baseUrl, tokenizer = folder, ...others } = options;
  const model = await openTinkerModel(saved.form.baseModel, { ...others, baseUrl, tokenizer, saved });
  await (model.policy as TinkerPolicy).loadCritic(folder);
  return model;
}

/** Options of `checkTinkerService`. */
export type TinkerCheckOptions = Pick<TinkerModelOptions, "apiKey" | "maxWaitSeconds" | "onWarning"> & {
  /** Default the first model that the service lists. */
  readonly model?: string | undefined;
};

/**
 * Measures how a service computes, on a small adapter.
 * @throws SERVICE_FAILED for a service that does not answer, INVALID_ARGUMENT for one that lists no
 * models without `model`.
 */
export async function checkTinkerService(
  baseUrl: string,
  { apiKey = readApiKey(), model, ...options }: TinkerCheckOptions = {},
): Promise<ServiceTraits & { readonly model: string; readonly models: readonly string[] }> {
  checkConnection(baseUrl, apiKey);
  const connection = { baseUrl, apiKey, ...options };
  const session = await ServiceSession.open(connection);
  const listed = await session.listModels().finally(async () => session.close());
  const models = listed.flatMap(({ model_name: name }) => name ?? []);
  const checked = model ?? models.at(0);
  if (checked === undefined) throw invalidArgument(`${baseUrl} does not list its models: name one with \`model\`.`);
  return { model: checked, models, ...(await probeService(connection, checked)) };
}

function toForm(
  baseModel: string,
  { rank = 16, seed = 0, trainAttn = true, trainMlp = true, trainUnembed = false }: TinkerModelOptions,
): ServiceAdapter {
  return { baseModel, rank, seed, trainAttn, trainMlp, trainUnembed };
}

/** @throws INVALID_ARGUMENT */
function checkConnection(baseUrl: string, apiKey: string): void {
  const example = "http://127.0.0.1:8000";
  checkServerAccess({ name: "baseUrl", address: baseUrl, example, apiKey, keyHome: "`apiKey` or TINKER_API_KEY" });
}

async function loadTokenizer(
  baseModel: string,
  { tokenizer = baseModel, splitSpecialTokens, onProgress }: TinkerModelOptions,
): Promise<Tokenizer> {
  if (typeof tokenizer !== "string") return tokenizer;
  try {
    return await AutoTokenizer.fromPretrained(tokenizer, { splitSpecialTokens, onProgress });
  } catch (error) {
    if (!(error instanceof LlamaGymError)) throw error;
    throw new LlamaGymError(
      error.code,
      `The tokenizer of ${tokenizer} is needed in this process. ${error.message} Set \`tokenizer\` to a hub id or folder with it.`,
      { cause: error },
    );
  }
}
