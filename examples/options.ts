/** The options that every example takes: --episodes, --model, --device. */
import { parseArgs } from "node:util";
import type { Device } from "llamagym";

export interface ExampleOptions {
  readonly episodes: number;
  /** "embedded", a folder, a GGUF file or a Hugging Face id. */
  readonly model: string;
  readonly device: Device;
  /** Whether it is the model that comes with llamagym; larger ones need a lower learning rate. */
  readonly isEmbedded: boolean;
}

export function parseOptions(defaults: { readonly episodes: number }): ExampleOptions {
  const { values } = parseArgs({
    options: {
      episodes: { type: "string", default: String(defaults.episodes) },
      model: { type: "string", default: "embedded" },
      device: { type: "string", default: "auto" },
    },
  });
  const episodes = Number(values.episodes);
  if (!Number.isInteger(episodes) || episodes < 1)
    throw new RangeError(`--episodes must be an integer >= 1, got ${values.episodes}.`);
  const isEmbedded = values.model === "embedded";
  return { episodes, model: values.model, device: values.device as Device, isEmbedded };
}
