/** `GET /api/runs/:run/league`: the opponents of a run in self-play. */
export interface LeagueInfo {
  /** Of the latest checkpoint, the oldest first. */
  readonly snapshots: readonly LeagueSnapshot[];
  /** Ratings by `llamagym eval GAME --elo`; null if it was not run. */
  readonly elo: EloRatings | null;
  /** Why a file cannot be read; null if it can. */
  readonly problem: string | null;
}

/** An earlier version of the policy, or an adapter of another run. */
export interface LeagueSnapshot {
  /** Updates that produced it; below 0 for adapters, in the order of the run's opponents. */
  readonly updates: number;
  /** Moving mean of the policy's score against it. */
  readonly winRate: number;
}

export interface EloRatings {
  /** Games of each pair; 0 for exact scores. */
  readonly games: number;
  /** The best player first. */
  readonly players: readonly { readonly name: string; readonly elo: number; readonly score: number }[];
}
