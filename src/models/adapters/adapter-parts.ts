import { invalidArgument } from "../../core/errors.js";
import type { DecoderConfig } from "../../engine/nn/index.js";
import { HEAD_MODULE, HEAD_WEIGHT, parameterShapes } from "../architectures/index.js";
import type { LoraConfig } from "../files/index.js";
import { isOfModule } from "../files/peft/index.js";
import { formatJson } from "../../core/files/json-file.js";
import { loraAName, loraBiasName, loraBName, loraMagnitudeName, type LoraModule } from "./lora-module.js";
import { selectLoraModules } from "./select-lora-modules.js";

/** Trained rows of the embedding, the output matrix, or both where they are tied. */
export interface TrainedTokens {
  /** PEFT's name of the rows [tokens, width]. */
  readonly name: string;
  readonly tokens: readonly number[];
  readonly inEmbedding: boolean;
  readonly inHead: boolean;
}

/** What an adapter trains. */
export interface AdapterParts {
  readonly modules: ReadonlyMap<string, LoraModule>;
  readonly trainedTokens: readonly TrainedTokens[];
  /** Parameters of the model that are trained as a whole: biases, and those of `modulesToSave`. */
  readonly ownParameters: readonly string[];
  /** Whether the adapter separates a tied output matrix from the embedding. */
  readonly untiesHead: boolean;
}

/**
 * Selects what an adapter trains, as PEFT does. @throws INVALID_ARGUMENT for invalid values and for
 * names that match nothing.
 */
export function selectAdapterParts(config: DecoderConfig, lora: LoraConfig): AdapterParts {
  const modules = selectLoraModules(config, lora);
  const { ownParameters, untiesHead } = selectOwnParameters(config, lora, modules);
  return { modules, ownParameters, untiesHead, trainedTokens: selectTrainedTokens(config, lora, ownParameters) };
}

function selectOwnParameters(
  config: DecoderConfig,
  { bias, modulesToSave, ensureWeightTying }: LoraConfig,
  modules: ReadonlyMap<string, LoraModule>,
): Pick<AdapterParts, "ownParameters" | "untiesHead"> {
  const { embedding, head } = config.names;
  const isTied = head === embedding;
  const names = [...parameterShapes(config).keys(), ...(isTied ? [HEAD_WEIGHT] : [])];
  const saved = new Set<string>();
  for (const module of modulesToSave) {
    const matches = names.filter((name) => isOfModule(name, module));
    if (matches.length === 0) {
      const ends = new Set(names.map((name) => name.split(".").at(-2)));
      throw invalidArgument(
        `\`modulesToSave\` ${formatJson(module)} matches no module of this model. Modules: ${[...ends].join(", ")}.`,
      );
    }
    for (const name of matches) saved.add(name);
  }
  const keepsTie = ensureWeightTying && isTied && (saved.has(embedding) || saved.has(HEAD_WEIGHT));
  if (keepsTie) {
    saved.add(embedding);
    saved.delete(HEAD_WEIGHT);
  }
  const adapted = [...modules.values()].find((lora) => saved.has(weightName(lora, HEAD_WEIGHT)));
  if (adapted !== undefined)
    throw invalidArgument(
      `\`modulesToSave\` and \`targetModules\` both name ${adapted.module}. Either train it as a whole or adapt it.`,
    );
  const isTrainedBias = (name: string) =>
    name.endsWith(".bias") && (bias === "all" || (bias === "lora_only" && modules.has(name.slice(0, -".bias".length))));
  return {
    ownParameters: names.filter((name) => saved.has(name) || isTrainedBias(name)),
    untiesHead: isTied && !keepsTie && (saved.has(embedding) || saved.has(HEAD_WEIGHT)),
  };
}

function weightName({ kind, module }: LoraModule, head: string): string {
  return kind === "head" ? head : `${module}.weight`;
}

function selectTrainedTokens(
  config: DecoderConfig,
  { trainableTokenIndices: given, ensureWeightTying }: LoraConfig,
  ownParameters: readonly string[],
): TrainedTokens[] {
  const embedding = config.names.embedding.replace(/\.weight$/u, "");
  const isTied = config.names.head === config.names.embedding;
  const byModule: readonly (readonly [string, readonly number[]])[] = isList(given)
    ? given.length === 0
      ? []
      : [[embedding, given]]
    : Object.entries(given);
  const tokens = new Map<string, readonly number[]>();
  for (const [end, indices] of byModule) {
    const module = [embedding, HEAD_MODULE].find((name) => name.endsWith(end));
    if (module === undefined)
      throw invalidArgument(
        `\`trainableTokenIndices\` names the module ${formatJson(end)}. Supported: ${embedding}, ${HEAD_MODULE}.`,
      );
    checkTokens(config, indices);
    tokens.set(module, indices);
  }
  const [ofEmbedding, ofHead] = [tokens.get(embedding), tokens.get(HEAD_MODULE)];
  const isShared = isTied && ofEmbedding !== undefined && (ofHead ?? ofEmbedding).join() === ofEmbedding.join();
  if (ensureWeightTying && isTied && ofHead !== undefined && !isShared)
    throw invalidArgument(
      `\`ensureWeightTying\` requires the same \`trainableTokenIndices\` for ${embedding} and ${HEAD_MODULE}.`,
    );
  const trained = [...tokens]
    .filter(([module]) => !isShared || module === embedding)
    .map(([module, indices]) => ({
      name: `${module}.token_adapter.trainable_tokens_delta`,
      tokens: indices,
      inEmbedding: module === embedding,
      inHead: module === HEAD_MODULE || isShared,
    }));
  const whole = trained.find(
    ({ inEmbedding, inHead }) =>
      (inEmbedding && ownParameters.includes(config.names.embedding)) ||
      (inHead && ownParameters.includes(HEAD_WEIGHT)),
  );
  if (whole !== undefined)
    throw invalidArgument(
      "`modulesToSave` trains all rows of a matrix of `trainableTokenIndices`. Remove one of them.",
    );
  return trained;
}

const isList = (indices: LoraConfig["trainableTokenIndices"]): indices is readonly number[] => Array.isArray(indices);

function checkTokens({ vocabSize }: DecoderConfig, tokens: readonly number[]): void {
  const invalid = tokens.find((token) => !Number.isInteger(token) || token < 0 || token >= vocabSize);
  if (invalid !== undefined)
    throw invalidArgument(
      `\`trainableTokenIndices\` must be token ids from 0 to ${vocabSize - 1}, got ${String(invalid)}.`,
    );
  if (new Set(tokens).size < tokens.length)
    throw invalidArgument("`trainableTokenIndices` must not repeat a token id.");
}

/** Returns the shapes of an adapter's parameters. */
export function getAdapterShapes(config: DecoderConfig, parts: AdapterParts): Map<string, readonly number[]> {
  const shapes = new Map<string, readonly number[]>();
  for (const lora of parts.modules.values()) {
    shapes.set(loraAName(lora), [lora.rank, lora.inFeatures]);
    shapes.set(loraBName(lora), [lora.outFeatures, lora.rank]);
    if (lora.hasBias) shapes.set(loraBiasName(lora), [lora.outFeatures]);
    if (lora.useDora) shapes.set(loraMagnitudeName(lora), [lora.outFeatures]);
  }
  for (const { name, tokens } of parts.trainedTokens) shapes.set(name, [tokens.length, config.hiddenSize]);
  const own = parameterShapes(config);
  for (const name of parts.ownParameters) shapes.set(name, own.get(name) ?? [config.vocabSize, config.hiddenSize]);
  return shapes;
}
