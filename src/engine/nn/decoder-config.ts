/** Frequencies of a rotary embedding, as the model's files give them. */
export interface RopeConfig {
  readonly theta: number;
  /** Dimensions of a head that turn; the rest stay. */
  readonly rotaryDim: number;
  readonly scaling: RopeScaling;
}

export type RopeScaling =
  | { readonly kind: "default" }
  | { readonly kind: "linear"; readonly factor: number }
  | { readonly kind: "dynamic"; readonly factor: number; readonly originalLength: number }
  | {
      readonly kind: "yarn";
      readonly factor: number;
      readonly originalLength: number;
      readonly betaFast: number;
      readonly betaSlow: number;
      readonly attentionFactor: number;
      /** Whether the corrected range is rounded to whole dimensions. */
      readonly truncate: boolean;
    }
  | {
      readonly kind: "longrope";
      readonly shortFactor: readonly number[];
      readonly longFactor: readonly number[];
      readonly originalLength: number;
      readonly attentionFactor: number;
    }
  | {
      readonly kind: "llama3";
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      readonly originalLength: number;
    };

/** Names of one layer's modules and parameters in the model's files; a missing one is not part of the architecture. */
export interface LayerNames {
  readonly attentionNorm: string;
  /** After attention, before the residual is added (Gemma). */
  readonly postAttentionNorm?: string;
  /** Before the feed-forward part; absent where it reads the same norm as attention (Phi). */
  readonly feedForwardNorm?: string;
  readonly postFeedForwardNorm?: string;
  readonly queryNorm?: string;
  readonly keyNorm?: string;
  /** Either three modules or one whose output holds query, key and value in this order. */
  readonly query?: string;
  readonly key?: string;
  readonly value?: string;
  readonly queryKeyValue?: string;
  readonly attentionOutput: string;
  /** Gated: gate and up, or one module whose output holds both. Plain: up alone. */
  readonly gate?: string;
  readonly up?: string;
  readonly gateUp?: string;
  readonly down: string;
}

export interface LayerConfig {
  readonly names: LayerNames;
  /** Which rope of the model turns queries and keys; undefined for a layer without positions. */
  readonly rope: number | undefined;
  /** A token sees itself and this many tokens before, less one; undefined for all. */
  readonly window: number | undefined;
  /** Factor on q k of this layer, in place of the model's. */
  readonly attentionScale?: number;
}

/** Which linear modules of a layer add a bias. */
export interface LinearBiases {
  readonly queryKeyValue: boolean;
  readonly attentionOutput: boolean;
  readonly feedForward: boolean;
}

/** A decoder-only transformer, in enough words to build every architecture that this library knows. */
export interface DecoderConfig {
  readonly modelType: string;
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
  readonly maxPositions: number;
  readonly layers: readonly LayerConfig[];
  readonly ropes: readonly RopeConfig[];
  readonly norm: {
    readonly kind: "rms" | "layer";
    readonly epsilon: number;
    /** Added to the stored weight (Gemma: 1). */ readonly offset: number;
  };
  readonly activation: "silu" | "gelu" | "geluTanh" | "relu";
  /** Attention and feed-forward read the same input and are added together (Phi). */
  readonly parallelResidual: boolean;
  /** Factor on q k. */
  readonly attentionScale: number;
  /** cap * tanh(score / cap) on attention scores. */
  readonly attentionSoftcap: number | undefined;
  readonly logitSoftcap: number | undefined;
  readonly embeddingScale: number;
  /** A token whose embedding is not trained where it is read, as PyTorch's padding_idx. */
  readonly paddingToken: number | undefined;
  readonly biases: LinearBiases;
  readonly names: {
    readonly embedding: string;
    readonly positions?: string;
    readonly finalNorm: string;
    /** The output matrix; that of the embedding where they are tied. */
    readonly head: string;
    readonly headBias?: string;
  };
  /** Weights are stored [in, out] (GPT-2's Conv1D). */
  readonly transposedWeights: boolean;
}
