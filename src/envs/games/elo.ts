/** Result of one player against another. */
export interface MatchScore {
  readonly first: number;
  readonly second: number;
  /** Mean score of the first: 1 for a win, 0.5 for a draw, 0 for a loss. */
  readonly score: number;
  readonly games: number;
}

const ITERATIONS = 10_000;
const TOLERANCE = 1e-9;

/**
 * Computes Elo ratings by maximum likelihood from matches between numbered players, with a draw
 * added to each match so that a player that never loses also has a rating. The player `anchor` has
 * rating 0; 400 points are odds of 10 to 1.
 */
export function computeElo(matches: readonly MatchScore[], numPlayers: number, anchor = 0): number[] {
  const played = matches.map(({ first, second, score, games }) => ({
    first,
    second,
    games: games + 1,
    points: score * games + 0.5,
  }));
  const points = Array.from({ length: numPlayers }, (_, i) =>
    played.reduce(
      (sum, match) => sum + (match.first === i ? match.points : match.second === i ? match.games - match.points : 0),
      0,
    ),
  );
  // The iteration of Bradley and Terry's model (Hunter 2004, MM).
  let strengths = Array.from({ length: numPlayers }, () => 1);
  for (let i = 0; i < ITERATIONS; i++) {
    const expected = Array.from({ length: numPlayers }, () => 0);
    for (const { first, second, games } of played) {
      const rate = games / (strengths[first] + strengths[second]);
      expected[first] += rate;
      expected[second] += rate;
    }
    const next = strengths.map((strength, player) =>
      expected[player] === 0 ? strength : points[player] / expected[player],
    );
    const scale = Math.exp(next.reduce((sum, strength) => sum + Math.log(strength), 0) / numPlayers);
    const scaled = next.map((strength) => strength / scale);
    const change = Math.max(...scaled.map((strength, player) => Math.abs(Math.log(strength / strengths[player]))));
    strengths = scaled;
    if (change < TOLERANCE) break;
  }
  return strengths.map((strength) => 400 * Math.log10(strength / strengths[anchor]));
}
