import type { DecoderConfig, LayerConfig } from "../../engine/nn/decoder-config.js";

/** A linear module of a layer, by its full path in the model, as PEFT names it. */
export interface LinearModule {
  readonly name: string;
  readonly inFeatures: number;
  readonly outFeatures: number;
  readonly bias: boolean;
}

/** Every linear module of the layers, in order: what PEFT's "all-linear" stands for (the output matrix is not one). */
export function linearModules(config: DecoderConfig): LinearModule[] {
  return config.layers.flatMap((layer) => layerModules(config, layer));
}

/** What an adapter may sit on, by its path in the model, as PEFT names it. */
export interface TargetModule extends Pick<LinearModule, "name" | "inFeatures" | "outFeatures"> {
  /** A linear module of a layer, the output matrix, or the embedding, whose input is a token's place in the vocabulary. */
  readonly kind: "linear" | "head" | "embedding";
}

/** The layers' linear modules, then the output matrix and the embedding. */
export function targetModules(config: DecoderConfig): TargetModule[] {
  const { names, vocabSize, hiddenSize } = config;
  const embedding = names.embedding.replace(/\.weight$/, "");
  return [
    ...linearModules(config).map((module) => ({ ...module, kind: "linear" as const })),
    { name: HEAD_MODULE, kind: "head", inFeatures: hiddenSize, outFeatures: vocabSize },
    { name: embedding, kind: "embedding", inFeatures: vocabSize, outFeatures: hiddenSize },
  ];
}

/** The path of the output matrix's module in every architecture, tied to the embedding or not. */
export const HEAD_MODULE = "lm_head";

/** Every parameter of a model with its shape, in the order of the network; a tied output matrix is the embedding's. */
export function parameterShapes(config: DecoderConfig): Map<string, readonly number[]> {
  const { names, vocabSize, hiddenSize, maxPositions, headDim, norm } = config;
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
    addNorm(layer.names.queryNorm, headDim);
    addNorm(layer.names.keyNorm, headDim);
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
