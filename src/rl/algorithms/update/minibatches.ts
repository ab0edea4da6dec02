import type { RandomStream } from "../../../core/random/random-stream.js";
import { sequenceKeys } from "../../../models/graphs/index.js";
import type { Trajectory } from "../../rollout/trajectory.js";

/**
 * Splits the turns, numbered across all trajectories, into random minibatches. Their number is the
 * number of turns divided by `size`, rounded, and their sizes differ by at most one turn. Turns of
 * one conversation and turns with the same prompt stay together, except where a minibatch ends,
 * because tokens that they share are computed once per minibatch. With `units`, those of the
 * trajectories, a minibatch ends behind a whole unit.
 */
export function shuffleIntoMinibatches(
  trajectories: readonly Trajectory[],
  size: number,
  random: RandomStream,
  units?: readonly number[],
): number[][] {
  const shuffle = <Item>(items: readonly Item[]) => random.permutation(items.length).map((i) => items[i]);
  if (units !== undefined) return cutBehindUnits(shuffle(unitTurns(trajectories, units)), size);
  const chains = shuffle(turnChains(trajectories));
  // Groups are shuffled again: in the order of their first turns, frequent prompts would come
  // first.
  const turnIndices = shuffle(mergeSamePrompts(chains, trajectories)).flat();
  const count = Math.max(1, Math.round(turnIndices.length / size));
  const boundary = (i: number) => Math.floor((i * turnIndices.length) / count);
  return Array.from({ length: count }, (_, i) => turnIndices.slice(boundary(i), boundary(i + 1)));
}

/** Lists the turns of each unit. */
function unitTurns(trajectories: readonly Trajectory[], units: readonly number[]): number[][] {
  const turns = new Map<number, number[]>();
  let turnIndex = 0;
  trajectories.forEach((trajectory, i) => {
    const own = trajectory.turns.map(() => turnIndex++);
    turns.set(units[i], [...(turns.get(units[i]) ?? []), ...own]);
  });
  return [...turns.values()];
}

/** Joins units to minibatches of about `size` turns. */
function cutBehindUnits(units: readonly (readonly number[])[], size: number): number[][] {
  const total = units.reduce((sum, { length }) => sum + length, 0);
  const count = Math.max(1, Math.round(total / size));
  const minibatches: number[][] = [[]];
  let taken = 0;
  for (const unit of units) {
    if (taken >= (minibatches.length * total) / count) minibatches.push([]);
    minibatches.at(-1)!.push(...unit);
    taken += unit.length;
  }
  return minibatches;
}

/** Groups the turns whose prompts each begin with the previous turn's prompt and completion. */
function turnChains(trajectories: readonly Trajectory[]): number[][] {
  const chains: number[][] = [];
  let turnIndex = 0;
  for (const { turns } of trajectories) {
    turns.forEach((turn, i) => {
      const previous = turns[i - 1];
      if (i > 0 && startsWithTokens(turn.prompt, [previous.prompt, previous.tokens])) chains.at(-1)!.push(turnIndex);
      else chains.push([turnIndex]);
      turnIndex++;
    });
  }
  return chains;
}

/** Merges chains of a single turn that have the same prompt. */
function mergeSamePrompts(chains: readonly (readonly number[])[], trajectories: readonly Trajectory[]): number[][] {
  const turns = trajectories.flatMap((trajectory) => trajectory.turns);
  const groups = new Map<string, number[]>();
  const sequenceKey = sequenceKeys();
  for (const chain of chains) {
    const key = chain.length > 1 ? `chain ${chain[0]}` : sequenceKey(turns[chain[0]].prompt);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [...chain]);
    else group.push(...chain);
  }
  return [...groups.values()];
}

function startsWithTokens(sequence: readonly number[], parts: readonly (readonly number[])[]): boolean {
  let offset = 0;
  return parts.every((part) => part.every((token) => sequence[offset++] === token));
}
