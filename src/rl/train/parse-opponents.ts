import { invalidArgument } from "../../core/errors.js";
import { GAME_OPPONENTS, type GameOpponent } from "../rollout/trajectory.js";

/** Weights of the opponents, which add up to 1. */
export type OpponentWeights = ReadonlyMap<GameOpponent, number>;

/**
 * Parses `NAME:WEIGHT,...`. @throws INVALID_ARGUMENT for unknown names, weights below 0 and a sum
 * of 0
 */
export function parseOpponents(given: string): OpponentWeights {
  const weights = new Map<GameOpponent, number>();
  for (const part of given.split(",")) {
    const [name, weight = "1", ...rest] = part.split(":").map((word) => word.trim());
    const value = weight === "" ? Number.NaN : Number(weight);
    if (!(GAME_OPPONENTS as readonly string[]).includes(name))
      throw invalidArgument(
        `\`opponents\` has the unknown opponent ${JSON.stringify(name)}. Known: ${GAME_OPPONENTS.join(", ")}, as in self:0.7,past:0.3.`,
      );
    if (!Number.isFinite(value) || value < 0 || rest.length > 0)
      throw invalidArgument(
        `\`opponents\` has ${JSON.stringify(part.trim())}; write a name and a weight of at least 0, as in self:0.7,past:0.3.`,
      );
    if (weights.has(name as GameOpponent))
      throw invalidArgument(`\`opponents\` has ${name} twice. Name each opponent once.`);
    weights.set(name as GameOpponent, value);
  }
  const total = [...weights.values()].reduce((sum, weight) => sum + weight, 0);
  if (total > 0) return new Map([...weights].map(([name, weight]) => [name, weight / total]));
  throw invalidArgument(
    "`opponents` has no weight above 0, so there would be no game. Give one, as in self:0.7,past:0.3.",
  );
}
