import type { Turn } from "./trajectory.js";

/**
 * Where the environment gave nothing but with the last turn, shares that equally between the turns; their sum stays, and so does
 * a penalty with the turn that earned it.
 */
export function spreadSparseReward(turns: readonly Turn[]): void {
  const envRewards = turns.map(({ reward, penalty }) => reward + penalty);
  const last = envRewards.pop();
  if (last === undefined || envRewards.some((reward) => reward !== 0)) return;
  for (const turn of turns) turn.reward = last / turns.length - turn.penalty;
}
