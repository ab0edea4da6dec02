/** Rotary embedding parameters of a model. */
export interface RopeConfig {
  readonly theta: number;
  /** Rotated dimensions of a head; the rest are unchanged. */
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
      /** Whether the correction range is rounded to whole dimensions. */
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

/**
 * Names of a layer's modules and parameters in the checkpoint; undefined for parts the architecture
 * lacks.
 */
export interface LayerNames {
  /** Before attention; undefined where attention reads the hidden states themselves (OLMo 2). */
  readonly attentionNorm?: string;
  /** After attention, before the residual addition (Gemma). */
  readonly postAttentionNorm?: string;
  /**
   * Before the feed-forward block; undefined where it shares attention's norm (Phi) or reads the
   * hidden states themselves (OLMo 2).
   */
  readonly feedForwardNorm?: string;
  readonly postFeedForwardNorm?: string;
  readonly queryNorm?: string;
  readonly keyNorm?: string;
  /** Either three modules or one, whose rows are ordered by `queryKeyValueOrder`. */
  readonly query?: string;
  readonly key?: string;
  readonly value?: string;
  readonly queryKeyValue?: string;
  readonly attentionOutput: string;
  /** Gated: `gate` and `up`, or one module that outputs both. Not gated: `up` only. */
  readonly gate?: string;
  readonly up?: string;
  readonly gateUp?: string;
  readonly down: string;
}

export interface LayerConfig {
  readonly names: LayerNames;
  /** Index of the rope applied to queries and keys; undefined for a layer without positions. */
  readonly rope: number | undefined;
  /**
   * Sliding window: a token attends to itself and the `window` - 1 tokens before it; undefined for
   * all.
   */
  readonly window: number | undefined;
  /** Overrides the model's attention scale. */
  readonly attentionScale?: number;
}

/** Which linear modules of a layer have a bias. */
export interface LinearBiases {
  readonly queryKeyValue: boolean;
  readonly attentionOutput: boolean;
  readonly feedForward: boolean;
}

/** A decoder-only transformer, in enough detail to build every supported architecture. */
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
    /** Added to the stored weight (1 for Gemma). */ readonly offset: number;
  };
  /**
   * Order of the rows of one module for query, key and value: all queries, all keys and all values,
   * or those of each head together (GPT-NeoX).
   */
  readonly queryKeyValueOrder: "parts" | "heads";
  /** Whether query and key norms see each head's vector or all heads' as one (OLMo 2). */
  readonly queryKeyNorm: "head" | "all";
  readonly activation: "silu" | "gelu" | "geluTanh" | "relu";
  /** Attention and feed-forward read the same input and their outputs are summed (Phi). */
  readonly parallelResidual: boolean;
  /** Factor applied to q k. */
  readonly attentionScale: number;
  /** Cap of attention scores: cap * tanh(score / cap). */
  readonly attentionSoftcap: number | undefined;
  /** Factor of the logits before their cap (Granite). */
  readonly logitScale: number;
  readonly logitSoftcap: number | undefined;
  readonly embeddingScale: number;
  /** Factor of what attention and feed-forward add to the hidden states (Granite). */
  readonly residualScale: number;
  /** Token whose embedding receives no gradient when read, as PyTorch's padding_idx. */
  readonly paddingToken: number | undefined;
  readonly biases: LinearBiases;
  readonly names: {
    readonly embedding: string;
    readonly positions?: string;
    readonly finalNorm: string;
    /** The output matrix; the embedding's name where they are tied. */
    readonly head: string;
    readonly headBias?: string;
    /** The output matrix in checkpoints, where its name is not the module's (GPT-NeoX). */
    readonly storedHead?: string;
  };
  /** Weights are stored [in, out] (GPT-2's Conv1D). */
  readonly transposedWeights: boolean;
}
