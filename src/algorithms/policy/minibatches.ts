import type { Segment } from "../../rollout/turn.js";
import type { RandomStream } from "../../tensor/random.js";

/**
 * Numbers of the segments' turns, counted through all segments, in random minibatches of at least `size` turns (the last one
 * may be smaller). Turns that stand in one sequence stay together, and so do those that answer the same prompt, so that what they
 * have in common is computed once.
 */
export function shuffledMinibatches(segments: readonly Segment[], size: number, random: RandomStream): number[][] {
  const chains = chainsOf(segments);
  const minibatches: number[][] = [];
  let open: number[] = [];
  for (const i of random.permutation(chains.length)) {
    open.push(...chains[i]);
    if (open.length < size) continue;
    minibatches.push(open);
    open = [];
  }
  if (open.length > 0) minibatches.push(open);
  return minibatches;
}

/** Turns in chains, each turn's prompt beginning with the prompt and the reply of the one before. */
function chainsOf(segments: readonly Segment[]): number[][] {
  const chains: number[][] = [];
  let number = 0;
  for (const { turns } of segments) {
    turns.forEach((turn, i) => {
      const last = turns.at(i - 1);
      const goesOn = i > 0 && last !== undefined && begins(turn.prompt, [last.prompt, last.tokens]);
      if (goesOn) chains.at(-1)!.push(number);
      else chains.push([number]);
      number++;
    });
  }
  return withoutTwins(chains, segments);
}

/** Chains of one turn with the same prompt as one. */
function withoutTwins(chains: readonly number[][], segments: readonly Segment[]): number[][] {
  const turns = segments.flatMap((segment) => segment.turns);
  const byPrompt = new Map<string, number[]>();
  return chains.filter((chain) => {
    if (chain.length > 1) return true;
    const prompt = turns[chain[0]].prompt.join();
    const twin = byPrompt.get(prompt);
    if (twin === undefined) byPrompt.set(prompt, chain);
    else twin.push(...chain);
    return twin === undefined;
  });
}

function begins(sequence: readonly number[], parts: readonly (readonly number[])[]): boolean {
  let at = 0;
  return parts.every((part) => part.every((token) => sequence[at++] === token));
}
