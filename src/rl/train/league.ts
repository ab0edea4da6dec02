import type { Matchup } from "../rollout/rollout-slot.js";
import { fs } from "#platform";
import { LlamaGymError } from "../../core/errors.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import type { Settings } from "../../core/settings.js";
import { SafetensorsFile, writeSafetensors } from "../../models/files/index.js";
import type { CausalLM } from "../../models/index.js";
import type { EpisodeSummary, GameOpponent, GameSummary } from "../rollout/trajectory.js";
import { findLatestCheckpoint } from "./checkpoints.js";
import { parseOpponents, type OpponentWeights } from "./parse-opponents.js";
import type { selfPlaySettings } from "./trainer-settings.js";

/** File of the snapshots in a checkpoint. */
const LEAGUE_FILE = "league.safetensors";

/** Decay of a snapshot's win rate per game. */
const WIN_RATE_DECAY = 0.98;

/** An earlier version of the policy. */
export interface Snapshot {
  /** Updates that produced it. */
  readonly updates: number;
  /** Trained values in the order of the model's parameters. */
  readonly values: Float32Array;
  /** Moving mean of the policy's score against it: 1 for a win, 0.5 for a draw. */
  readonly winRate: number;
}

/** An adapter of another run that plays in the league. */
export interface AdapterOpponent {
  readonly path: string;
  /** Share of the games. */
  readonly weight: number;
  /** As those of a snapshot. */
  readonly values: Float32Array;
}

/** State of a league as JSON, without the values of the snapshots. */
export interface LeagueState {
  readonly snapshots: readonly Omit<Snapshot, "values">[];
}

/** The opponents of a run in self-play, among them earlier versions of the policy. */
export class League {
  private readonly weights: OpponentWeights["byKind"];
  private list: readonly Snapshot[] = [];
  /** Never replaced; their versions are below 0. */
  private adapterList: readonly (Snapshot & { readonly weight: number })[];

  /** @throws INVALID_ARGUMENT for invalid weights */
  constructor(
    private readonly settings: Omit<Settings<typeof selfPlaySettings>, "selfPlay">,
    private readonly numSeats: number,
    adapters: readonly AdapterOpponent[] = [],
  ) {
    this.weights = parseOpponents(settings.opponents).byKind;
    this.adapterList = adapters.map(({ values, weight }, i) => ({ updates: -1 - i, values, weight, winRate: 0.5 }));
  }

  /** Whether this opponent plays. */
  has(opponent: GameOpponent): boolean {
    return (this.weights.get(opponent) ?? 0) > 0;
  }

  /** The snapshots of now and the adapters; later ones are in another list. */
  get snapshots(): readonly Snapshot[] {
    return [...this.list, ...this.adapterList];
  }

  /**
   * Takes a snapshot if one is due after this many updates: the first one stays, the others make
   * room for later ones.
   */
  async addIfDue(model: CausalLM, updates: number): Promise<void> {
    const { snapshotSteps, leagueSize } = this.settings;
    const isTaken = this.list.some((other) => other.updates === updates);
    if (!this.has("past") || updates % snapshotSteps !== 0 || isTaken) return;
    const { data } = await model.runtime.read(model.parameters.values);
    const list = [...this.list, { updates, values: (data as Float32Array).slice(), winRate: 0.5 }];
    if (list.length > leagueSize) list.splice(leagueSize === 1 ? 0 : 1, 1);
    this.list = list;
  }

  /**
   * Draws the past opponent or the adapter of a rollout, one of them for all its games; undefined
   * before the first snapshot.
   */
  drawPast(all: readonly Snapshot[], random: RandomStream): Snapshot | undefined {
    const snapshots = all.filter(({ updates }) => updates >= 0);
    const adapters = this.adapterList.map(({ weight }) => weight);
    const past = snapshots.length === 0 ? 0 : (this.weights.get("past") ?? 0);
    if (adapters.length > 0) {
      const drawn = drawWeighted([undefined, ...this.adapterList], [past, ...adapters], random);
      if (drawn !== undefined) return drawn;
    }
    if (snapshots.length === 0) return undefined;
    const isUniform = this.settings.pastSelection === "uniform";
    // A snapshot that is always beaten keeps a small chance, so that its win rate stays known.
    const weights = snapshots.map(({ winRate }) => (isUniform ? 1 : 0.01 + (1 - winRate) ** 2));
    return drawWeighted(snapshots, weights, random);
  }

  /** Draws who plays the next game. */
  drawMatchup(past: Snapshot | undefined, random: RandomStream): Matchup {
    const drawn = drawWeighted([...this.weights.keys()], [...this.weights.values()], random);
    const seat = random.integers(0, this.numSeats);
    if (drawn !== "past" && drawn !== "adapter")
      return drawn === "self" ? { opponent: drawn } : { opponent: drawn, seat };
    if (past === undefined) return { opponent: "self" };
    // The one of the rollout stands for both kinds, in proportion over the rollouts.
    return { opponent: past.updates < 0 ? "adapter" : "past", seat, past: past.updates };
  }

  /** Updates the win rates of the past opponents. */
  count(episodes: readonly EpisodeSummary[]): void {
    const games = episodes.flatMap(({ game }) => (game === undefined ? [] : [game]));
    const addGames = <T extends Snapshot>(snapshot: T): T => {
      const scores = games.filter(({ past }) => past === snapshot.updates).map(scoreGame);
      const { winRate } = snapshot;
      return {
        ...snapshot,
        winRate: scores.reduce((mean, score) => mean + (1 - WIN_RATE_DECAY) * (score - mean), winRate),
      };
    };
    this.list = this.list.map(addGames);
    this.adapterList = this.adapterList.map(addGames);
  }

  getState(): LeagueState {
    return { snapshots: this.snapshots.map(({ updates, winRate }) => ({ updates, winRate })) };
  }

  /** Writes the snapshots into the folder of a checkpoint. */
  async save(folder: string): Promise<void> {
    const { snapshots } = this;
    if (snapshots.length === 0) return;
    const tensors = snapshots.map(({ updates, values }) => ({
      name: String(updates),
      shape: [values.length],
      data: values,
    }));
    await writeSafetensors(fs.join(folder, LEAGUE_FILE), tensors);
  }

  /**
   * Restores the state of a checkpoint. @throws FILE_CORRUPT for snapshots that the checkpoint's
   * file does not have
   */
  async load(folder: string, { snapshots }: LeagueState): Promise<void> {
    const values = await readSnapshots(folder);
    const all = snapshots.map(({ updates, winRate }) => {
      const found = values.get(updates);
      if (found !== undefined && Number.isFinite(winRate)) return { updates, winRate, values: found };
      throw new LlamaGymError(
        "FILE_CORRUPT",
        `The checkpoint ${folder} has no snapshot of update ${String(updates)} in ${LEAGUE_FILE}.`,
      );
    });
    this.list = all.filter(({ updates }) => updates >= 0);
    // The values come from the checkpoint: the files of the adapters may have changed.
    this.adapterList = this.adapterList.map((adapter) => ({
      ...adapter,
      ...all.find(({ updates }) => updates === adapter.updates),
    }));
  }
}

/**
 * Reads the versions of the policy in the latest checkpoint of a run in self-play, from the oldest
 * one on.
 */
export async function readLeague(checkpointDir: string): Promise<readonly Pick<Snapshot, "updates" | "values">[]> {
  const checkpoint = await findLatestCheckpoint(checkpointDir);
  const snapshots = checkpoint === undefined ? new Map<number, Float32Array>() : await readSnapshots(checkpoint);
  return [...snapshots]
    .filter(([updates]) => updates >= 0)
    .sort(([a], [b]) => a - b)
    .map(([updates, values]) => ({ updates, values }));
}

/** Reads the snapshots of a checkpoint by the updates that produced them; empty without any. */
async function readSnapshots(folder: string): Promise<ReadonlyMap<number, Float32Array>> {
  const path = fs.join(folder, LEAGUE_FILE);
  const snapshots = new Map<number, Float32Array>();
  if (!(await fs.exists(path))) return snapshots;
  const file = await SafetensorsFile.open(path);
  try {
    for (const name of file.entries.keys()) snapshots.set(Number(name), await file.readFloat32(name));
  } finally {
    await file.close();
  }
  return snapshots;
}

/** Returns the score of the policy's seat: 1 for a win, 0.5 for a draw, 0 for a loss. */
export function scoreGame({ seats: [seat], returns }: GameSummary): number {
  const best = Math.max(...returns.filter((_, other) => other !== seat));
  return returns[seat] > best ? 1 : returns[seat] === best ? 0.5 : 0;
}

function drawWeighted<T>(values: readonly T[], weights: readonly number[], random: RandomStream): T {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return random.choice(values, { probabilities: weights.map((weight) => weight / total) });
}
