import type { NumberArray } from "../shared/statistics.js";

/** Decay of the moving mean per game, as in SPIRAL. */
const DECAY = 0.95;

/** Moving means of the returns of each seat. */
export interface SeatBaselineState {
  /** By seat: the weighted sum of returns, and the sum of the weights. */
  readonly seats: readonly { readonly sum: number; readonly weight: number }[];
}

export const INITIAL_SEAT_BASELINE: SeatBaselineState = { seats: [] };

/**
 * Returns the baseline of each episode, the moving mean of its seat's returns before it (Liu et al.
 * 2025, SPIRAL), and the state after the last one. Without the correction for the start at 0, the
 * first baselines are too close to 0.
 */
export function computeSeatBaselines(
  episodes: readonly { readonly seat: number | undefined; readonly rewards: NumberArray }[],
  state: SeatBaselineState,
  biasCorrection: boolean,
): { readonly baselines: readonly number[]; readonly state: SeatBaselineState } {
  const seats = [...state.seats];
  const baselines = episodes.map(({ seat = 0, rewards }) => {
    while (seats.length <= seat) seats.push({ sum: 0, weight: 0 });
    const { sum, weight } = seats[seat];
    const total = Array.from(rewards).reduce((all, reward) => all + reward, 0);
    seats[seat] = { sum: DECAY * sum + (1 - DECAY) * total, weight: DECAY * weight + (1 - DECAY) };
    return biasCorrection && weight > 0 ? sum / weight : sum;
  });
  return { baselines, state: { seats } };
}
