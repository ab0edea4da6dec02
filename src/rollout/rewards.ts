import type { Turn } from "./turn.js";

/**
 * Where the environment gave nothing but with the last turn, shares that equally between the turns; their sum stays, and so does
 * a penalty with the turn that earned it.
 */
export function shareSparseReward(turns: readonly Turn[]): void {
  const given = turns.map(({ reward, penalty }) => reward + penalty);
  const last = given.pop();
  if (last === undefined || given.some((reward) => reward !== 0)) return;
  for (const turn of turns) turn.reward = last / turns.length - turn.penalty;
}
