import { invalidArgument } from "../../core/errors.js";
import { boolean, choice, defineSettings, integer, text } from "../../core/settings.js";
import { GAME_OPPONENTS, type GameOpponent } from "../rollout/trajectory.js";

/** Settings of self-play in games; docs/self-play.md. */
export const selfPlaySettings = defineSettings(
  {
    /** Trains on the games of the policy against itself and a league. Default false: against the environment's opponent. */
    selfPlay: boolean({
      common: true,
      description: "Train on games of the policy against itself and a league of opponents (docs/self-play.md).",
    }),
    /** Weights of the opponents. Default "self:0.7,past:0.3". */
    opponents: text({
      default: "self:0.7,past:0.3",
      valueName: "weights",
      description: "Weights of the opponents in self-play: self, past (earlier versions), random, minimax.",
    }),
    /** Updates between snapshots of the policy for the league. Default 20. */
    snapshotSteps: integer({
      default: 20,
      min: 1,
      description: "Number of updates between snapshots of the policy, the past opponents.",
    }),
    /** Snapshots in the league: the first one and the latest ones. Default 8. */
    leagueSize: integer({
      default: 8,
      min: 1,
      max: 100,
      description: "Number of snapshots in the league: the first one and the latest ones.",
    }),
    /** "hardest" prefers snapshots that the policy seldom beats, by (1 - win rate)^2. Default "uniform". */
    pastSelection: choice({
      default: "uniform",
      choices: ["uniform", "hardest"],
      description:
        "How the snapshot of an update is drawn: all alike, or those that the policy seldom beats more often.",
    }),
  },
  { group: "Self-play", scope: "rollouts" },
);

/** Settings of exact evaluation during training. */
export const exactEvaluationSettings = defineSettings(
  {
    /** Computes exact values of the policy in evaluations with `evalSteps`. Default false. */
    evalExact: boolean({
      description: "Compute exact values of the policy in a small game in evaluations with evalSteps.",
    }),
  },
  { group: "Self-play", scope: "evaluation" },
);

/** Weights of the opponents, which add up to 1. */
export type OpponentWeights = ReadonlyMap<GameOpponent, number>;

/** Parses `NAME:WEIGHT,...`. @throws INVALID_ARGUMENT for unknown names, weights below 0 and a sum of 0 */
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
