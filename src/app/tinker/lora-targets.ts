import { invalidArgument } from "../../core/errors.js";
import type { DecoderConfig, LayerNames } from "../../engine/nn/index.js";
import { HEAD_MODULE } from "../../models/architectures/index.js";

/** Which parts of a model an adapter trains, in the fields of the Tinker API. */
export interface LoraFlags {
  readonly train_attn: boolean;
  readonly train_mlp: boolean;
  readonly train_unembed: boolean;
}

const ATTENTION: readonly (keyof LayerNames)[] = ["query", "key", "value", "queryKeyValue", "attentionOutput"];
const FEED_FORWARD: readonly (keyof LayerNames)[] = ["gate", "up", "gateUp", "down"];

/**
 * Returns the modules to adapt as PEFT's `target_modules`: the ends of their paths that no other
 * module shares.
 * @throws INVALID_ARGUMENT if all flags are false.
 */
export function selectTargets({ layers }: DecoderConfig, flags: LoraFlags): readonly string[] {
  const pathsOf = (parts: readonly (keyof LayerNames)[]) =>
    new Set(layers.flatMap(({ names }) => parts.flatMap((part) => names[part] ?? [])));
  const [attention, feedForward] = [pathsOf(ATTENTION), pathsOf(FEED_FORWARD)];
  const all = [...attention, ...feedForward];
  const end = (path: string, parts: number) => path.split(".").slice(-parts).join(".");
  const shortest = (path: string, group: ReadonlySet<string>) =>
    [1, 2]
      .map((parts) => end(path, parts))
      .find((name) => all.every((other) => group.has(other) || !`.${other}`.endsWith(`.${name}`))) ?? path;
  const targets = [
    ...(flags.train_attn ? Array.from(attention, (path) => shortest(path, attention)) : []),
    ...(flags.train_mlp ? Array.from(feedForward, (path) => shortest(path, feedForward)) : []),
    ...(flags.train_unembed ? [HEAD_MODULE] : []),
  ];
  if (targets.length === 0)
    throw invalidArgument("One of train_attn, train_mlp and train_unembed must be true; all are false.");
  return [...new Set(targets)];
}
