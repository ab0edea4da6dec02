import { z } from "zod";
import { errorMessage, LlamaGymError } from "../../core/errors.js";
import { isJsonObject } from "../../core/json.js";
import { decodeChunk, parseRolloutLine, ROLLOUTS_FILE, type RolloutRecord } from "../../rl/tracking/index.js";
import type {
  RecordedAlternative,
  EpisodeDetail,
  EpisodeList,
  EpisodeRow,
  Group,
  GroupList,
  TurnDetail,
} from "./api.js";
import { readNewLines, type FileCursor, type RunsFolder } from "./run-files.js";

/** Rows of one answer. */
const MAX_ROWS = 1_000;
/**
 * Rows of a run in memory, some 300 bytes each; those of the oldest updates are left out beyond it.
 */
const MAX_INDEXED_ROWS = 500_000;
/** Parts of an episode that are joined: more would be a conversation over as many updates. */
const MAX_PARTS = 50;

const number = z.number().nullable();
/**
 * A list with one problem, however many of its elements are wrong: a problem takes some hundred
 * bytes.
 */
const listOf = <Value>(isItem: (item: unknown) => boolean) =>
  z.custom<Value[]>((value) => Array.isArray(value) && value.every(isItem), "it is not a list of valid elements");
const isNumber = (value: unknown) => typeof value === "number";
const isProbability = (value: unknown) => value === null || isNumber(value);
const numbers = listOf<number>(isNumber);
const perToken = listOf<number | null>(isProbability);
const isAlternative = (value: unknown) =>
  isJsonObject(value) && isNumber(value.token) && isProbability(value.probability);
const isCandidate = (value: unknown) =>
  isJsonObject(value) && typeof value.text === "string" && isProbability(value.probability);
const turnSchema = z.object({
  step: z.number(),
  observation: z.string().nullable(),
  render: z.string().nullable(),
  prompt: numbers,
  tokens: numbers,
  text: z.string(),
  finishReason: z.string(),
  isValid: z.boolean(),
  extraction: z.string().nullable(),
  action: z.string().nullable(),
  reward: number,
  returnToGo: number,
  value: number,
  advantage: number,
  logProbs: perToken,
  refLogProbs: perToken.nullable(),
  teacherLogProbs: perToken.nullable().optional(),
  entropies: perToken.nullable(),
  values: perToken.nullable(),
  advantages: perToken.nullable(),
  returns: perToken.nullable(),
  ratios: perToken.nullable(),
  clipped: listOf<0 | 1>((value) => value === 0 || value === 1).nullable(),
  marks: z.string(),
  allowedCounts: numbers.nullable(),
  alternatives: listOf<RecordedAlternative[]>((list) => Array.isArray(list) && list.every(isAlternative)).nullable(),
  candidates: listOf<NonNullable<TurnDetail["candidates"]>[number]>(isCandidate).nullable(),
}) satisfies z.ZodType<TurnDetail>;
const rowSchema = z.object({
  id: z.string().max(40),
  step: z.number(),
  envSlot: number,
  group: number,
  return: number,
  turns: z.number(),
  tokens: z.number(),
  end: z.enum(["terminated", "truncated", "partial"]),
  startsEpisode: z.boolean(),
  seed: number,
  advantage: number,
  hasSignal: z.boolean(),
  seat: z.number().optional(),
  opponent: z.string().max(100).optional(),
}) satisfies z.ZodType<EpisodeRow>;
const episodeSchema = z.object({
  row: rowSchema,
  turns: listOf<TurnDetail>((turn) => turnSchema.safeParse(turn).success),
  final: z.object({ observation: z.string().nullable(), render: z.string().nullable() }),
});
const vocabularySchema = z.object({
  texts: z.custom<Record<string, string>>(
    (texts) => isJsonObject(texts) && Object.values(texts).every((text) => typeof text === "string"),
  ),
  special: numbers,
});

/** Returns the rows of a line of rollouts.jsonl; undefined for a line of another form. */
export function parseEpisodeRows(line: string): readonly EpisodeRow[] | undefined {
  const rows = parseRolloutLine(line)?.episodes;
  return rows?.every((row) => rowSchema.safeParse(row).success) === true ? rows : undefined;
}

/** Where the line of an update lies. */
interface Chunk {
  readonly step: number;
  readonly rows: readonly EpisodeRow[];
  readonly offset: number;
  readonly length: number;
}

/** The chunks of a run's recording, read as far as the file has grown. */
class RolloutIndex {
  chunks: Chunk[] = [];
  invalidLines = 0;
  leftOutRows = 0;
  private rowCount = 0;
  private cursor: FileCursor | undefined;
  private update: Promise<void> = Promise.resolve();

  async refresh(runs: RunsFolder, id: string): Promise<void> {
    this.update = this.update.catch(() => {}).then(async () => this.read(runs, id));
    return this.update;
  }

  private async read(runs: RunsFolder, id: string): Promise<void> {
    for (;;) {
      const added = await readNewLines(runs, id, ROLLOUTS_FILE, this.cursor);
      if (added === undefined || added.isReset) {
        this.chunks = [];
        this.invalidLines = this.leftOutRows = this.rowCount = 0;
      }
      if (added === undefined) return void (this.cursor = undefined);
      let offset = added.isReset ? 0 : (this.cursor?.offset ?? 0);
      for (const line of added.lines) {
        const length = Buffer.byteLength(line);
        const rows = parseEpisodeRows(line);
        if (rows === undefined || rows.length === 0) this.invalidLines++;
        else this.add({ step: rows[0].step, rows, offset, length });
        offset += length + 1;
      }
      while (this.rowCount > MAX_INDEXED_ROWS && this.chunks.length > 1) this.leaveOutOldest();
      this.cursor = added.cursor;
      if (!added.hasMore || (added.lines.length === 0 && !added.isReset)) return;
    }
  }

  private add(chunk: Chunk): void {
    this.chunks.push(chunk);
    this.rowCount += chunk.rows.length;
  }

  private leaveOutOldest(): void {
    const { length } = this.chunks.shift()!.rows;
    this.rowCount -= length;
    this.leftOutRows += length;
  }
}

function describeProblems({ invalidLines, leftOutRows }: RolloutIndex): string | null {
  const problems = [
    ...(invalidLines === 0 ? [] : [`${invalidLines} lines of ${ROLLOUTS_FILE} cannot be read and are left out.`]),
    ...(leftOutRows === 0 ? [] : [`The oldest ${leftOutRows} episodes are left out: ${MAX_INDEXED_ROWS} are shown.`]),
  ];
  return problems.length === 0 ? null : problems.join(" ");
}

export interface EpisodeQuery {
  /** Only episodes before this one in time. */
  readonly before?: string;
  readonly step?: number;
  readonly limit?: number;
}

/** Recorded episodes of runs. */
export class RolloutStore {
  private readonly indices = new Map<string, RolloutIndex>();

  constructor(private readonly runs: RunsFolder) {}

  /** Lists episodes, the newest first. */
  async list(id: string, { before, step, limit = 100 }: EpisodeQuery): Promise<EpisodeList> {
    const index = await this.read(id);
    const { chunks } = index;
    const rows = chunks.filter((chunk) => step === undefined || chunk.step === step).flatMap((chunk) => chunk.rows);
    const end =
      before === undefined
        ? rows.length
        : Math.max(
            0,
            rows.findLastIndex((row) => row.id === before),
          );
    const start = Math.max(0, end - Math.min(Math.max(1, limit), MAX_ROWS));
    return {
      episodes: rows.slice(start, end).reverse(),
      total: rows.length,
      steps: chunks.map((chunk) => chunk.step),
      problem: describeProblems(index),
    };
  }

  /**
   * Returns an episode, joined from the parts that consecutive updates trained. @throws
   * FILE_NOT_FOUND, FILE_CORRUPT
   */
  async episode(id: string, episodeId: string): Promise<EpisodeDetail> {
    const { chunks } = await this.read(id);
    let index = chunks.findLastIndex(({ rows }) => rows.some((row) => row.id === episodeId));
    if (index < 0)
      throw new LlamaGymError("FILE_NOT_FOUND", `The run has no recorded episode ${JSON.stringify(episodeId)}.`);
    let row = chunks[index].rows.find((candidate) => candidate.id === episodeId)!;
    // Back to the part that starts the episode, then forward to its end.
    for (let parts = 1; !row.startsEpisode && row.envSlot !== null && parts < MAX_PARTS; parts++) {
      const previous = adjacent(chunks, index, -1)?.rows.findLast(({ envSlot }) => envSlot === row.envSlot);
      if (previous?.end !== "partial") break;
      row = previous;
      index--;
    }
    const parts = [await this.part(id, chunks[index], row)];
    while (row.end === "partial" && row.envSlot !== null && parts.length < MAX_PARTS) {
      const next = adjacent(chunks, index, 1)?.rows.find(({ envSlot }) => envSlot === row.envSlot);
      if (next === undefined || next.startsEpisode) break;
      row = next;
      parts.push(await this.part(id, chunks[++index], row));
    }
    return joinParts(parts);
  }

  /** Returns the groups of an update, by default the newest. @throws FILE_CORRUPT */
  async groups(id: string, step?: number): Promise<GroupList> {
    const { chunks } = await this.read(id);
    const grouped = chunks.filter(({ rows }) => rows.some(({ group }) => group !== null));
    const chunk = grouped.findLast((candidate) => step === undefined || candidate.step === step);
    const steps = grouped.map((candidate) => candidate.step);
    if (chunk === undefined) return { step: step ?? 0, steps, groups: [] };
    const { episodes, vocabulary } = await this.decode(id, chunk, (index) => chunk.rows[index].group !== null);
    const groups = new Map<number, EpisodeDetail[]>();
    for (const episode of episodes) {
      const { group } = episode.row;
      if (group !== null) groups.set(group, [...(groups.get(group) ?? []), { ...episode, vocabulary }]);
    }
    return {
      step: chunk.step,
      steps,
      groups: Array.from(groups, ([group, members]): Group => {
        return { group, members, hasSignal: members.some(({ row }) => row.hasSignal) };
      }),
    };
  }

  private async part(id: string, chunk: Chunk, row: EpisodeRow): Promise<EpisodeDetail> {
    const index = chunk.rows.indexOf(row);
    const { episodes, vocabulary } = await this.decode(id, chunk, (each) => each === index);
    return { ...episodes[0], vocabulary };
  }

  private async decode(
    id: string,
    { offset, length }: Chunk,
    wanted: (index: number) => boolean,
  ): Promise<RolloutRecord> {
    const file = await this.runs.openFile(id, ROLLOUTS_FILE);
    try {
      const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(length), position: offset });
      const line = parseRolloutLine(buffer.toString("utf8", 0, bytesRead));
      if (line === undefined) throw corrupt("it was replaced while it was read");
      const record = await decodeChunk(line, wanted);
      const checks = [
        vocabularySchema.safeParse(record.vocabulary),
        ...record.episodes.map((each) => episodeSchema.safeParse(each)),
      ];
      const failed = checks.find(({ error }) => error !== undefined);
      if (failed !== undefined) throw corrupt(errorMessage(failed.error));
      return record;
    } finally {
      await file.close();
    }
  }

  private async read(id: string): Promise<RolloutIndex> {
    await this.runs.folder(id);
    const index = this.indices.get(id) ?? new RolloutIndex();
    this.indices.set(id, index);
    await index.refresh(this.runs, id);
    return index;
  }
}

function corrupt(reason: string): LlamaGymError {
  return new LlamaGymError("FILE_CORRUPT", `A chunk of ${ROLLOUTS_FILE} cannot be read: ${reason}.`);
}

/**
 * Returns the chunk of the previous or the next update, unless it was not recorded or thinned out.
 */
function adjacent(chunks: readonly Chunk[], index: number, direction: 1 | -1): Chunk | undefined {
  const chunk = chunks.at(index + direction);
  return index + direction >= 0 && chunk?.step === chunks[index].step + direction ? chunk : undefined;
}

function joinParts(parts: readonly EpisodeDetail[]): EpisodeDetail {
  const [first] = parts;
  const last = parts.at(-1)!;
  if (first === last) return first;
  const turns = parts.flatMap((part) => part.turns);
  let returnToGo = 0;
  const withReturns = turns.toReversed().map((turn) => ({ ...turn, returnToGo: (returnToGo += turn.reward ?? 0) }));
  const sum = (name: "turns" | "tokens") => parts.reduce((total, { row }) => total + row[name], 0);
  return {
    row: { ...first.row, end: last.row.end, turns: sum("turns"), tokens: sum("tokens"), return: returnToGo },
    turns: withReturns.reverse(),
    vocabulary: {
      texts: Object.assign({}, ...parts.map(({ vocabulary }) => vocabulary.texts)) as Record<number, string>,
      special: [...new Set(parts.flatMap(({ vocabulary }) => vocabulary.special))],
    },
    final: last.final,
  };
}
