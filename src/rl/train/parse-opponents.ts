import { invalidArgument } from "../../core/errors.js";
import { GAME_OPPONENTS, type GameOpponent } from "../rollout/trajectory.js";

/** Weights of the opponents, which add up to 1. */
export interface OpponentWeights {
  /** That of "adapter" is the sum of those in `adapters`. */
  readonly byKind: ReadonlyMap<GameOpponent, number>;
  /** By path or hub id. */
  readonly adapters: ReadonlyMap<string, number>;
}

const EXAMPLE = "self:0.7,past:0.3";
const NAMES: readonly string[] = GAME_OPPONENTS.filter((name) => name !== "adapter");

/**
 * Parses `NAME:WEIGHT,...`; names with a slash are adapters. @throws INVALID_ARGUMENT for unknown
 * names, weights below 0 and a sum of 0
 */
export function parseOpponents(given: string): OpponentWeights {
  const weights = new Map<string, number>();
  for (const part of given.split(",")) {
    const [name, value] = parsePart(part.trim());
    if (!NAMES.includes(name) && !/[/\\]/.test(name))
      throw invalidArgument(
        `\`opponents\` has the unknown opponent ${JSON.stringify(name)}. Known: ${NAMES.join(", ")}, as in ${EXAMPLE}, and adapters of runs by their path, as in runs/tic-tac-toe:0.2.`,
      );
    if (weights.has(name)) throw invalidArgument(`\`opponents\` has ${name} twice. Name each opponent once.`);
    weights.set(name, value);
  }
  const total = [...weights.values()].reduce((sum, weight) => sum + weight, 0);
  if (total <= 0)
    throw invalidArgument(
      `\`opponents\` has no weight above 0, so there would be no game. Give one, as in ${EXAMPLE}.`,
    );
  const byKind = new Map<GameOpponent, number>();
  const adapters = new Map<string, number>();
  for (const [name, weight] of weights) {
    const kind = NAMES.includes(name) ? (name as GameOpponent) : "adapter";
    byKind.set(kind, (byKind.get(kind) ?? 0) + weight / total);
    if (kind === "adapter" && weight > 0) adapters.set(name, weight / total);
  }
  return { byKind, adapters };
}

/** Splits `NAME:WEIGHT` at the last colon; paths may have others. */
function parsePart(part: string): [name: string, weight: number] {
  const [, name, weight = "1"] = /^(.*?)(?::([^:/\\]*))?$/.exec(part)!;
  const value = weight.trim() === "" ? Number.NaN : Number(weight);
  const trimmed = name.trim();
  if (Number.isFinite(value) && value >= 0 && (!trimmed.includes(":") || /[/\\]/.test(trimmed)))
    return [trimmed, value];
  throw invalidArgument(
    `\`opponents\` has ${JSON.stringify(part)}; write a name and a weight of at least 0, as in ${EXAMPLE}.`,
  );
}
