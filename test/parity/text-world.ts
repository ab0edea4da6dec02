import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { getStaticInfos } from "../../src/text-world/text-game.js";
import { readStoryFiles, type StoryFiles } from "../../src/text-world/story-files.js";
import { StoryGame } from "../../src/text-world/story-game.js";
import { INFO_NAMES, type GameState } from "../../src/text-world/text-game.js";
import type { ParityOptions, ParityReport } from "./parity-report.js";

const SUFFIX = ".transcript.json";
/** The recorded runs, each with all information asked for. */
const RECORDED_RUNS = ["walkthrough", "random_1", "random_2", "odd"] as const;
const GAME_INFOS = {
  objective: "objective",
  max_score: "maxScore",
  entities: "entities",
  typed_entities: "typedEntities",
  verbs: "verbs",
  command_templates: "commandTemplates",
  walkthrough: "walkthrough",
} as const;
const STEP_INFOS = {
  feedback: "feedback",
  score: "score",
  moves: "moves",
  won: "won",
  lost: "lost",
  inventory: "inventory",
  description: "description",
  admissible_commands: "admissibleCommands",
  intermediate_reward: "intermediateReward",
  policy_commands: "policyCommands",
  last_action: "lastAction",
  facts: "facts",
} as const;

type Values = Readonly<Record<string, unknown>>;

interface RecordedRun {
  readonly commands: readonly string[];
  readonly states: readonly Values[];
}

interface Transcript extends Partial<Record<(typeof RECORDED_RUNS)[number], RecordedRun>> {
  readonly game_file: string;
  readonly game?: Values;
  readonly plain?: { readonly commands: readonly string[]; readonly rows: readonly unknown[] };
}

/**
 * Plays every recorded game of textworld/ below `directory` again and compares all that TextWorld
 * told of it.
 */
export async function runTextWorldParity(
  directory: string,
  report: ParityReport,
  _options: ParityOptions,
): Promise<void> {
  const folder = join(directory, "textworld");
  const files = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: "utf8" }) : [];
  const names = files.filter((name) => name.endsWith(SUFFIX));
  if (names.length === 0) report.skip("textworld", `no *${SUFFIX} in ${folder}`);
  for (const name of names.sort()) {
    const caseName = `textworld/${name.slice(0, -SUFFIX.length)}`;
    try {
      const transcript = JSON.parse(readFileSync(join(folder, name), "utf8")) as Transcript;
      compareTranscript(
        caseName,
        transcript,
        readStoryFiles(join(folder, dirname(name), transcript.game_file)),
        report,
      );
    } catch (error) {
      report.error(caseName, error);
    }
  }
}

function compareTranscript(name: string, transcript: Transcript, files: StoryFiles, report: ParityReport): void {
  if (transcript.game !== undefined) {
    const differences = compareGame(transcript.game, files);
    report.checkEqual(`${name} game`, differences.length === 0, differences.join(", "));
  }
  for (const run of RECORDED_RUNS) {
    const recorded = transcript[run];
    if (recorded === undefined) continue;
    reportDifference(`${name} ${run}`, report, () => compareRun(recorded, files));
  }
  const { plain } = transcript;
  if (plain !== undefined) reportDifference(`${name} plain`, report, () => comparePlain(plain, files));
}

/** Reports the first difference that `compare` finds; one that breaks does not stop the others. */
function reportDifference(name: string, report: ParityReport, compare: () => string | undefined): void {
  try {
    const difference = compare();
    report.checkEqual(name, difference === undefined, difference);
  } catch (error) {
    report.error(name, error);
  }
}

function compareGame(recorded: Values, files: StoryFiles): string[] {
  const ours = getStaticInfos(files.game, new Set(INFO_NAMES));
  const differences = Object.entries(GAME_INFOS)
    .filter(([theirs, name]) => theirs in recorded && !isDeepStrictEqual(ours[name] ?? null, recorded[theirs]))
    .map(([theirs]) => theirs);
  const possible = files.game.possibleAdmissibleCommands.length;
  const recordedPossible = recorded["possible_admissible_commands"];
  if (recordedPossible !== undefined && recordedPossible !== possible) differences.push("possible_admissible_commands");
  return differences;
}

function compareRun({ commands, states }: RecordedRun, { story, game }: StoryFiles): string | undefined {
  const player = new StoryGame(story, game, { infos: new Set(INFO_NAMES) });
  return firstDifference(states.length, (i) => {
    const state = i === 0 ? player.start() : player.send(commands[i - 1]);
    const recorded = states[i];
    const mismatch = Object.entries(STEP_INFOS).find(
      ([theirs, name]) => theirs in recorded && !isDeepStrictEqual(state[name] ?? null, recorded[theirs]),
    );
    if (mismatch !== undefined)
      return `${mismatch[0]}: ${formatExcerpt(state[mismatch[1]])} for ${formatExcerpt(recorded[mismatch[0]])}`;
    const done = i === 0 ? null : state.won || state.lost;
    return done === (recorded["done"] ?? null) ? undefined : `done: ${done}`;
  });
}

function comparePlain(
  { commands, rows }: { commands: readonly string[]; rows: readonly unknown[] },
  { story, game }: StoryFiles,
): string | undefined {
  const player = new StoryGame(story, game, { infos: new Set() });
  return firstDifference(rows.length, (i) => {
    const state: GameState = i === 0 ? player.start() : player.send(commands[i - 1]);
    const row = [state.feedback, state.score, state.won || state.lost];
    return isDeepStrictEqual(row, rows[i]) ? undefined : `${formatExcerpt(row)} for ${formatExcerpt(rows[i])}`;
  });
}

function firstDifference(length: number, differenceAt: (index: number) => string | undefined): string | undefined {
  for (let i = 0; i < length; i++) {
    const difference = differenceAt(i);
    if (difference !== undefined) return `at state ${i}, ${difference}`;
  }
  return undefined;
}

function formatExcerpt(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 200 ? `${text.slice(0, 200)}...` : text;
}
