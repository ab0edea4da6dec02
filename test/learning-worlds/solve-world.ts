import type { JsonValue } from "../../src/core/json.js";
import { RandomStream } from "../../src/core/random/random-stream.js";
import type { World } from "./world.js";

/** Returns of a world: by the best policy with memory, and by actions drawn uniformly. */
export interface WorldReturns {
  readonly best: number;
  readonly random: number;
}

/** Probabilities of states, by their JSON, given everything observed so far. */
type Belief = ReadonlyMap<string, number>;

/**
 * Computes exact returns by value iteration over beliefs and steps. Where observations reveal the
 * state, a belief is one state. Merges observations that differ only in wording, so the result
 * holds for an agent that reads them.
 */
export function solveWorld(world: World): WorldReturns {
  const solve = (isBest: boolean): number => {
    const values = new Map<string, number>();
    const value = (belief: Belief, steps: number): number => {
      if (steps === 0) return 0;
      const key = `${steps} ${JSON.stringify([...belief].toSorted(([a], [b]) => (a < b ? -1 : 1)))}`;
      const known = values.get(key);
      if (known !== undefined) return known;
      const [state] = belief.keys();
      const actionValues = world
        .actions(JSON.parse(state) as JsonValue)
        .map((action) => actionValue(belief, action, steps));
      const result = isBest
        ? Math.max(...actionValues)
        : actionValues.reduce((sum, each) => sum + each, 0) / actionValues.length;
      values.set(key, result);
      return result;
    };
    const actionValue = (belief: Belief, action: string, steps: number): number => {
      let reward = 0;
      const next: { probability: number; state: JsonValue }[] = [];
      for (const [state, probability] of belief)
        for (const outcome of world.step(JSON.parse(state) as JsonValue, action)) {
          reward += probability * outcome.probability * outcome.reward;
          if (!outcome.isEnd) next.push({ probability: probability * outcome.probability, state: outcome.state });
        }
      return (
        reward +
        groupByObservation(world, next).reduce(
          (sum, { probability, belief: nextBelief }) => sum + probability * value(nextBelief, steps - 1),
          0,
        )
      );
    };
    return groupByObservation(world, world.start).reduce(
      (sum, { probability, belief }) => sum + probability * value(belief, world.maxEpisodeSteps),
      0,
    );
  };
  return { best: solve(true), random: solve(false) };
}

function groupByObservation(
  world: World,
  states: readonly { readonly probability: number; readonly state: JsonValue }[],
): readonly { readonly probability: number; readonly belief: Belief }[] {
  const groups = new Map<string, Map<string, number>>();
  for (const { probability, state } of states) {
    const text = world.describe(state, new RandomStream(0));
    const group = groups.get(text) ?? new Map<string, number>();
    groups.set(text, group);
    const key = JSON.stringify(state);
    group.set(key, (group.get(key) ?? 0) + probability);
  }
  return [...groups.values()].map((group) => {
    const probability = [...group.values()].reduce((sum, each) => sum + each, 0);
    // Rounded, so that beliefs which differ by the order of sums are one.
    const belief = new Map([...group].map(([state, each]) => [state, Number((each / probability).toFixed(12))]));
    return { probability, belief };
  });
}
