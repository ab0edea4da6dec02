/**
 * Low-rank adapter configuration (Hu et al. 2021), with PEFT's names in camelCase and PEFT's
 * defaults.
 */
export interface LoraConfig {
  /** Rank. */
  readonly r: number;
  /** The adapter's output is scaled by loraAlpha / r (loraAlpha / sqrt(r) with `useRslora`). */
  readonly loraAlpha: number;
  /** Dropout probability of the adapter's input during training. */
  readonly loraDropout: number;
  /**
   * Module names (full paths or suffixes), a regular expression for full paths, or "all-linear".
   */
  readonly targetModules: string | readonly string[];
  readonly useRslora: boolean;
  /** Ranks by regular expression for the end of a module's path; `alphaPattern` likewise. */
  readonly rankPattern: Readonly<Record<string, number>>;
  readonly alphaPattern: Readonly<Record<string, number>>;
  /**
   * Layers whose target modules are adapted, counted from 0; empty for all. In `getPeftModel` -1 is
   * the last layer, and negative numbers before the first layer select nothing.
   */
  readonly layersToTransform: number | readonly number[];
  /**
   * Name of the list of layers in module paths, for `layersToTransform`; empty for any, as in
   * `model.layers.0`.
   */
  readonly layersPattern: string | readonly string[];
  /**
   * Modules that are not adapted: names (full paths or suffixes), or a regular expression for full
   * paths.
   */
  readonly excludeModules: string | readonly string[];
  /** Weight-decomposed adapters (Liu et al. 2024): a trained magnitude for each output. */
  readonly useDora: boolean;
  /** Biases of the base model that are trained: none, those of the adapted modules, or all. */
  readonly bias: "none" | "lora_only" | "all";
  /** Whether B has a bias. */
  readonly loraBias: boolean;
  /**
   * Modules that are fully trained and saved with the adapter: ends of their paths, such as
   * "embed_tokens", "lm_head" or "norm".
   */
  readonly modulesToSave: readonly string[];
  /**
   * Tokens whose rows of the embedding are trained; by module ("embed_tokens", "lm_head") for
   * others than the embedding's.
   */
  readonly trainableTokenIndices: readonly number[] | Readonly<Record<string, readonly number[]>>;
  /** Whether a tied output matrix stays tied to an embedding that is trained or adapted. */
  readonly ensureWeightTying: boolean;
}

export const LORA_DEFAULTS: LoraConfig = {
  r: 8,
  loraAlpha: 8,
  loraDropout: 0,
  targetModules: "all-linear",
  useRslora: false,
  rankPattern: {},
  alphaPattern: {},
  layersToTransform: [],
  layersPattern: [],
  excludeModules: [],
  useDora: false,
  bias: "none",
  loraBias: false,
  modulesToSave: [],
  trainableTokenIndices: [],
  ensureWeightTying: false,
};
