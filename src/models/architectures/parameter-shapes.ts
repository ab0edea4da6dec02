import type { DecoderConfig, LayerConfig } from "../../engine/nn/index.js";

/** A linear module, by its full path as in PEFT. */
export interface LinearModule {
  readonly name: string;
  readonly inFeatures: number;
  readonly outFeatures: number;
  readonly bias: boolean;
}

/**
 * Returns the layers' linear modules in order: PEFT's "all-linear", which excludes the output
 * matrix.
 */
export function linearModules(config: DecoderConfig): LinearModule[] {
  return config.layers.flatMap((layer) => layerModules(config, layer));
}

/** A module that an adapter can target, by its path as in PEFT. */
export interface TargetModule extends Pick<LinearModule, "name" | "inFeatures" | "outFeatures"> {
  /** "embedding" takes a one-hot token of the vocabulary as input. */
  readonly kind: "linear" | "head" | "embedding";
}

/** Returns the layers' linear modules, the output matrix and the embedding. */
export function targetModules(config: DecoderConfig): TargetModule[] {
  const { names, vocabSize, hiddenSize } = config;
  const embedding = names.embedding.replace(/\.weight$/, "");
  return [
    ...linearModules(config).map((module) => ({ ...module, kind: "linear" as const })),
    { name: HEAD_MODULE, kind: "head", inFeatures: hiddenSize, outFeatures: vocabSize },
    { name: embedding, kind: "embedding", inFeatures: vocabSize, outFeatures: hiddenSize },
  ];
}

/**
 * Returns the layer of a parameter or module; 0 for embeddings and the number of layers for what
 * follows the last one.
 */
export function findLayer({ layers, names }: DecoderConfig, name: string): number {
  const module = name.replace(/\.(?:weight|bias)$/u, "");
  const isEmbedding = [names.embedding, names.positions].some((each) => each?.replace(/\.weight$/u, "") === module);
  const layer = layers.findIndex((each) => Object.values(each.names).includes(module));
  return isEmbedding ? 0 : layer === -1 ? layers.length : layer;
}

/** Path of the output matrix's module in every architecture, tied or not. */
export const HEAD_MODULE = "lm_head";

/** The output matrix of models that do not tie it to the embedding. */
export const HEAD_WEIGHT = `${HEAD_MODULE}.weight`;

/**
 * Returns the shape of every parameter in the network's order; a tied output matrix appears as the
 * embedding.
 */
export function parameterShapes(config: DecoderConfig): Map<string, readonly number[]> {
  const { names, vocabSize, hiddenSize, maxPositions, norm } = config;
  const shapes = new Map<string, readonly number[]>();
  const addNorm = (name: string | undefined, width: number) => {
    if (name === undefined) return;
    shapes.set(`${name}.weight`, [width]);
    if (norm.kind === "layer") shapes.set(`${name}.bias`, [width]);
  };

  shapes.set(names.embedding, [vocabSize, hiddenSize]);
  if (names.positions !== undefined) shapes.set(names.positions, [maxPositions, hiddenSize]);
  for (const layer of config.layers) {
    addNorm(layer.names.attentionNorm, hiddenSize);
    addNorm(layer.names.queryNorm, getNormWidth(config, config.heads));
    addNorm(layer.names.keyNorm, getNormWidth(config, config.keyValueHeads));
    addNorm(layer.names.postAttentionNorm, hiddenSize);
    addNorm(layer.names.feedForwardNorm, hiddenSize);
    addNorm(layer.names.postFeedForwardNorm, hiddenSize);
    for (const { name, inFeatures, outFeatures, bias } of layerModules(config, layer)) {
      shapes.set(`${name}.weight`, config.transposedWeights ? [inFeatures, outFeatures] : [outFeatures, inFeatures]);
      if (bias) shapes.set(`${name}.bias`, [outFeatures]);
    }
  }
  addNorm(names.finalNorm, hiddenSize);
  shapes.set(names.head, [vocabSize, hiddenSize]);
  if (names.headBias !== undefined) shapes.set(names.headBias, [vocabSize]);
  return shapes;
}

function getNormWidth({ queryKeyNorm, headDim }: DecoderConfig, heads: number): number {
  return queryKeyNorm === "head" ? headDim : heads * headDim;
}

function layerModules(config: DecoderConfig, { names }: LayerConfig): LinearModule[] {
  const { hiddenSize, intermediateSize, heads, keyValueHeads, headDim, biases } = config;
  const queryWidth = heads * headDim;
  const keyWidth = keyValueHeads * headDim;
  const modules: LinearModule[] = [];
  const add = (name: string | undefined, inFeatures: number, outFeatures: number, bias: boolean) => {
    if (name !== undefined) modules.push({ name, inFeatures, outFeatures, bias });
  };
  add(names.query, hiddenSize, queryWidth, biases.queryKeyValue);
  add(names.key, hiddenSize, keyWidth, biases.queryKeyValue);
  add(names.value, hiddenSize, keyWidth, biases.queryKeyValue);
  add(names.queryKeyValue, hiddenSize, queryWidth + 2 * keyWidth, biases.queryKeyValue);
  add(names.attentionOutput, queryWidth, hiddenSize, biases.attentionOutput);
  add(names.gate, hiddenSize, intermediateSize, biases.feedForward);
  add(names.up, hiddenSize, intermediateSize, biases.feedForward);
  add(names.gateUp, hiddenSize, 2 * intermediateSize, biases.feedForward);
  add(names.down, intermediateSize, hiddenSize, biases.feedForward);
  return modules;
}
