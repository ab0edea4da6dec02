import type { JsonObject } from "../../core/json.js";

/** Recommended settings of a training run. */
export interface ModelDefaults {
  readonly completionPrefix?: string;
  readonly maxCompletionLength?: number;
  readonly temperature?: number;
  readonly r?: number;
  readonly loraAlpha?: number;
  readonly targetModules?: string;
}

/** A registry entry. */
export interface ModelEntry {
  /** The hub id. */
  readonly id: string;
  readonly parameters: number;
  readonly license: string;
  /** The fields of config.json that determine the network's sizes. */
  readonly config: JsonObject;
  /** "chat" (default) follows instructions; "base" continues a text. */
  readonly kind?: "chat" | "base";
  /** Whether its terms must be accepted on the hub before download. Default false. */
  readonly gated?: boolean;
  /** Notes on prompting it. */
  readonly note?: string;
  readonly defaults?: ModelDefaults;
}
