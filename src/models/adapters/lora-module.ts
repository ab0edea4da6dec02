import type { TargetModule } from "../architectures/index.js";

/** One adapted module: W x + scaling * B (A x). */
export interface LoraModule {
  /** The module's path in the model, as PEFT names it. */
  readonly module: string;
  readonly kind: TargetModule["kind"];
  readonly rank: number;
  readonly scaling: number;
  readonly inFeatures: number;
  readonly outFeatures: number;
  /** Whether the sum is scaled to trained norms of its rows (DoRA). */
  readonly useDora: boolean;
  /** Whether B has a bias. */
  readonly hasBias: boolean;
  /** Whether the adapter of an embedding applies to the tied output matrix as well. */
  readonly tiesHead: boolean;
}

type NamedModule = Pick<LoraModule, "module" | "kind">;

/** Returns PEFT's name of a module's A, without its prefix. */
export const loraAName = ({ module, kind }: NamedModule): string =>
  kind === "embedding" ? `${module}.lora_embedding_A` : `${module}.lora_A.weight`;

/** Returns PEFT's name of a module's B, without its prefix. */
export const loraBName = ({ module, kind }: NamedModule): string =>
  kind === "embedding" ? `${module}.lora_embedding_B` : `${module}.lora_B.weight`;

/** Returns PEFT's name of the bias of a module's B, without its prefix. */
export const loraBiasName = ({ module }: NamedModule): string => `${module}.lora_B.bias`;

/** Returns PEFT's name of a module's magnitudes, without its prefix. */
export const loraMagnitudeName = ({ module }: NamedModule): string => `${module}.lora_magnitude_vector`;
