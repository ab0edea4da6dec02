import { z } from "zod";
import { errorMessage } from "../../core/errors.js";
import { ELO_FILE } from "../runs/run-folder.js";
import type { LeagueInfo } from "./api.js";
import { listCheckpoints } from "./list-checkpoints.js";
import type { RunsFolder } from "./run-files.js";

/** Players and snapshots of an answer. */
const MAX_ITEMS = 1_000;
const MAX_NAME_LENGTH = 200;

const stateSchema = z.object({
  task: z.object({
    league: z.object({ snapshots: z.array(z.object({ updates: z.int(), winRate: z.number() })) }).optional(),
  }),
});
const eloSchema = z.object({
  games: z.int(),
  players: z.array(
    z.object({
      name: z.string().transform((name) => name.slice(0, MAX_NAME_LENGTH)),
      elo: z.number(),
      score: z.number(),
    }),
  ),
});

/**
 * Reads the league of a run's latest checkpoint and its ratings; empty for a run without them.
 * @throws FILE_NOT_FOUND for an unknown run.
 */
export async function readLeagueInfo(runs: RunsFolder, id: string): Promise<LeagueInfo> {
  await runs.folder(id);
  const problems: string[] = [];
  const read = async <T>(file: string, schema: z.ZodType<T>): Promise<T | undefined> => {
    try {
      const json = await runs.readJson(id, file);
      return json === undefined ? undefined : schema.parse(json);
    } catch (error) {
      problems.push(`${file}: ${errorMessage(error)}`);
      return undefined;
    }
  };
  const latest = Math.max(...(await listCheckpoints(runs, id)).map(({ updates }) => updates ?? -1), -1);
  const folder = `checkpoints/${String(latest).padStart(6, "0")}`;
  const state = latest < 0 ? undefined : await read(`${folder}/state.json`, stateSchema);
  const elo = await read(ELO_FILE, eloSchema);
  return {
    snapshots: (state?.task.league?.snapshots ?? []).slice(0, MAX_ITEMS),
    elo: elo === undefined ? null : { ...elo, players: elo.players.slice(0, MAX_ITEMS) },
    problem: problems.length === 0 ? null : problems.join(" "),
  };
}
