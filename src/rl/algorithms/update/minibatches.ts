import type { Trajectory } from "../../rollout/trajectory.js";
import type { RandomStream } from "../../../core/random/random-stream.js";

/**
 * Numbers of the segments' turns, counted through all segments, in random minibatches of at least `size` turns (the last one
 * may be smaller). Turns that stand in one sequence stay together, and so do those that answer the same prompt, so that what they
 * have in common is computed once.
 */
export function shuffleIntoMinibatches(
  trajectories: readonly Trajectory[],
  minSize: number,
  random: RandomStream,
): number[][] {
  const chains = turnChains(trajectories);
  const minibatches: number[][] = [];
  let current: number[] = [];
  for (const i of random.permutation(chains.length)) {
    current.push(...chains[i]);
    if (current.length < minSize) continue;
    minibatches.push(current);
    current = [];
  }
  if (current.length > 0) minibatches.push(current);
  return minibatches;
}

/** Turns in chains, each turn's prompt beginning with the prompt and the reply of the one before. */
function turnChains(trajectories: readonly Trajectory[]): number[][] {
  const chains: number[][] = [];
  let turnIndex = 0;
  for (const { turns } of trajectories) {
    turns.forEach((turn, i) => {
      const previous = turns.at(i - 1);
      const continuesChain =
        i > 0 && previous !== undefined && startsWithTokens(turn.prompt, [previous.prompt, previous.tokens]);
      if (continuesChain) chains.at(-1)!.push(turnIndex);
      else chains.push([turnIndex]);
      turnIndex++;
    });
  }
  return mergeSamePrompts(chains, trajectories);
}

/** Chains of one turn with the same prompt as one. */
function mergeSamePrompts(chains: readonly number[][], trajectories: readonly Trajectory[]): number[][] {
  const turns = trajectories.flatMap((trajectory) => trajectory.turns);
  const byPrompt = new Map<string, number[]>();
  return chains.filter((chain) => {
    if (chain.length > 1) return true;
    const prompt = turns[chain[0]].prompt.join();
    const existing = byPrompt.get(prompt);
    if (existing === undefined) byPrompt.set(prompt, chain);
    else existing.push(...chain);
    return existing === undefined;
  });
}

function startsWithTokens(sequence: readonly number[], parts: readonly (readonly number[])[]): boolean {
  let offset = 0;
  return parts.every((part) => part.every((token) => sequence[offset++] === token));
}
