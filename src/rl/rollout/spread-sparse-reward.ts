import type { Turn } from "./trajectory.js";

/**
 * Spreads the environment's reward evenly over the turns if only the last one is not 0. Penalties
 * stay with their turns.
 */
export function spreadSparseReward(turns: readonly Turn[]): void {
  const envRewards = turns.map(({ reward, penalty }) => reward + penalty);
  const last = envRewards.pop();
  if (last === undefined || envRewards.some((reward) => reward !== 0)) return;
  for (const turn of turns) turn.reward = last / turns.length - turn.penalty;
}
