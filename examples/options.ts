/** The options of examples: --episodes, --model, --device, and --seed where it has a default. */
import { parseArgs } from "node:util";
import type { Device } from "llamagym";

export interface ExampleOptions {
  readonly episodes: number;
  /** "embedded", a folder, a GGUF file or a Hugging Face id. */
  readonly model: string;
  readonly device: Device;
  /** Whether it is the model that comes with llamagym; larger ones need a lower learning rate. */
  readonly isEmbedded: boolean;
  readonly seed: number;
}

export function parseOptions(defaults: { readonly episodes: number; readonly seed?: number }): ExampleOptions {
  const { values } = parseArgs({
    options: {
      episodes: { type: "string", default: String(defaults.episodes) },
      model: { type: "string", default: "embedded" },
      device: { type: "string", default: "auto" },
      ...(defaults.seed === undefined ? {} : { seed: { type: "string", default: String(defaults.seed) } }),
    },
  });
  const episodes = Number(values.episodes);
  if (!Number.isInteger(episodes) || episodes < 1)
    throw new RangeError(`--episodes must be an integer >= 1, got ${values.episodes}.`);
  const seed = Number(values.seed ?? 1);
  if (!Number.isInteger(seed) || seed < 0)
    throw new RangeError(`--seed must be an integer >= 0, got ${String(values.seed)}.`);
  const isEmbedded = values.model === "embedded";
  return { episodes, model: values.model, device: values.device as Device, isEmbedded, seed };
}
