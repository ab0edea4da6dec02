import type { TargetModule } from "../architectures/index.js";

/** How a low-rank adapter is attached to a model (Hu et al. 2021); PEFT's names in camelCase, with PEFT's defaults. */
export interface LoraConfig {
  /** Rank. */
  readonly r: number;
  /** The adapter's output is multiplied by loraAlpha / r (or loraAlpha / sqrt(r) when rank-stabilised). */
  readonly loraAlpha: number;
  /** Probability of dropping an input of the adapter during training. */
  readonly loraDropout: number;
  /** Module names (a full path, or the end of one), a regular expression for full paths, or "all-linear". */
  readonly targetModules: string | readonly string[];
  readonly useRslora: boolean;
  /** Ranks and alphas of their own for modules whose path matches a key (a path's end, as a regular expression). */
  readonly rankPattern: Readonly<Record<string, number>>;
  readonly alphaPattern: Readonly<Record<string, number>>;
}

export const LORA_DEFAULTS: LoraConfig = {
  r: 8,
  loraAlpha: 8,
  loraDropout: 0,
  targetModules: "all-linear",
  useRslora: false,
  rankPattern: {},
  alphaPattern: {},
};

/** One adapted module: W x + scaling * B (A x). */
export interface LoraModule {
  /** The module's path in the model, as PEFT names it. */
  readonly module: string;
  readonly kind: TargetModule["kind"];
  readonly rank: number;
  readonly scaling: number;
  readonly inFeatures: number;
  readonly outFeatures: number;
}

type NamedModule = Pick<LoraModule, "module" | "kind">;

/** PEFT's name of a module's A, less its prefix. */
export const loraAName = ({ module, kind }: NamedModule): string =>
  kind === "embedding" ? `${module}.lora_embedding_A` : `${module}.lora_A.weight`;

/** PEFT's name of a module's B, less its prefix. */
export const loraBName = ({ module, kind }: NamedModule): string =>
  kind === "embedding" ? `${module}.lora_embedding_B` : `${module}.lora_B.weight`;
