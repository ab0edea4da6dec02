import type { JsonObject } from "../files/json-file.js";

/** What suits a model better than the settings' own defaults; the names are a training run's. */
export interface ModelDefaults {
  readonly completionPrefix?: string;
  readonly maxCompletionLength?: number;
  readonly temperature?: number;
  readonly r?: number;
  readonly loraAlpha?: number;
  readonly targetModules?: string;
}

/** A model as it is registered. */
export interface ModelEntry {
  /** The hub id. */
  readonly id: string;
  readonly parameters: number;
  readonly license: string;
  /** config.json, as far as its network's sizes go. */
  readonly config: JsonObject;
  /** "chat" (the default) follows instructions; "base" goes on with a text. */
  readonly kind?: "chat" | "base";
  /** Its terms must be accepted on the hub before its files can be had. Default false. */
  readonly gated?: boolean;
  /** What is particular about talking to it. */
  readonly note?: string;
  readonly defaults?: ModelDefaults;
}
