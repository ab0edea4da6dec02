import type { Turn } from "./turn.js";

/** Where all rewards but the last are zero, shares it equally between the turns; their sum stays. */
export function shareSparseReward(turns: readonly Turn[]): void {
  const isSparse = turns.slice(0, -1).every(({ reward }) => reward === 0);
  if (!isSparse || turns.length === 0) return;
  const share = turns[turns.length - 1].reward / turns.length;
  for (const turn of turns) turn.reward = share;
}
