import { invalidArgument, LlamaGymError } from "../core/errors.js";
import {
  Env,
  type EnvMetadata,
  type RenderFrame,
  type RenderMode,
  type ResetOptions,
  type ResetResult,
  type StepResult,
  type Info,
  applyDefaults,
  formatValue,
  Text,
  type TextInterface,
} from "../envs/index.js";
import type { JsonValue } from "../core/json.js";
import type { TextWorldGame } from "./game.js";
import { HOUSE_DEFAULTS, type HouseOptions, makeHouse } from "./house/make-house.js";
import { HouseGame } from "./house/house-game.js";
import { readStoryFiles } from "./story-files.js";
import { StoryGame } from "./story-game.js";
import { type GameState, getStaticInfos, INFO_NAMES, type InfoName, type TextGame } from "./text-game.js";
import {
  COMMAND_CHARACTERS,
  MAX_COMMAND_LENGTH,
  cleanFeedback,
  compactTextWorldText,
  textWorldText,
} from "./text-world-text.js";

const LATIN_1 = Array.from({ length: 96 }, (_, i) => String.fromCharCode(160 + i)).join("");
const PRINTABLE = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join("") + LATIN_1;
/** Maximum length of feedback, above that of any story or generated house. */
const MAX_FEEDBACK = 8192;
/** Number of possible seeds of generated games. */
const NUM_GAME_SEEDS = 2 ** 32;

/** Default info entries. */
const DEFAULT_INFOS = "objective description inventory admissibleCommands score won lost".split(" ") as InfoName[];

export interface TextWorldOptions extends HouseOptions {
  /**
   * Path of a TextWorld story file with its .json in the same folder, or several to draw from for
   * each episode.
   */
  readonly gameFile?: string | readonly string[];
  /** Seed of the generated game. Default: a different game every episode. */
  readonly gameSeed?: number;
  /**
   * Info entries. Default: objective, description, inventory, admissibleCommands, score, won and
   * lost.
   */
  readonly infos?: readonly InfoName[];
  /** Reward of a step: its points, or TextWorld's intermediate reward. */
  readonly reward?: "score" | "intermediate";
  /**
   * Shorter prompts: the commands of the episode so far (`info.commands`) in place of the
   * admissible ones. Default false.
   */
  readonly compactText?: boolean;
  /**
   * `info.hint` names the next command of the quest, for a teacher
   * (docs/algorithms/distillation.md). Default false.
   */
  readonly hints?: boolean;
}

/** Key of a game: a file's index, or a generated game's seed. */
type GameKey = number;

/**
 * Text adventures from TextWorld (Cote et al. 2018) or generated. Observation: the game's output.
 * Action: a command.
 */
export class TextWorldEnv extends Env<string, string> {
  readonly observationSpace = new Text(MAX_FEEDBACK, { minLength: 0, charset: `\n${PRINTABLE}` });
  readonly actionSpace = new Text(MAX_COMMAND_LENGTH, { charset: COMMAND_CHARACTERS });
  override readonly metadata: EnvMetadata = { renderModes: ["ansi"], renderFps: 1 };
  override readonly text: TextInterface<string, string>;
  private infos: ReadonlySet<InfoName>;
  private readonly reward: "score" | "intermediate";
  private readonly hints: boolean;
  private readonly house: HouseOptions;
  private readonly gameSeed: number | undefined;
  private readonly files: readonly ReturnType<typeof readStoryFiles>[];
  private readonly games = new Map<GameKey, { game: TextWorldGame; textGame: TextGame; staticInfos: Info }>();
  private gameKey: GameKey = 0;
  private commands: string[] = [];
  private state: GameState | undefined;

  /**
   * @throws FILE_NOT_FOUND, FILE_CORRUPT or FORMAT_UNSUPPORTED for a game file, INVALID_ARGUMENT
   * for an option.
   */
  constructor(options: TextWorldOptions = {}) {
    super();
    const {
      gameFile,
      gameSeed,
      infos = DEFAULT_INFOS,
      reward = "score",
      compactText = false,
      hints = false,
      ...house
    } = options;
    this.house = applyDefaults("TextWorld", house, HOUSE_DEFAULTS as Required<HouseOptions>);
    this.text = compactText ? compactTextWorldText : textWorldText;
    this.hints = hints;
    this.infos = new Set([...checkInfos(infos, reward), ...(hints ? (["policyCommands"] as const) : [])]);
    this.reward = reward;
    this.gameSeed = gameSeed;
    this.files = [gameFile ?? []].flat().map(readStoryFiles);
    // Fails early for impossible options.
    if (this.files.length === 0) makeHouse(this.house, gameSeed ?? 0);
  }

  override reset({ seed }: ResetOptions = {}): ResetResult<string> {
    this.reseed(seed);
    this.gameKey = this.drawGameKey();
    this.commands = [];
    this.state = this.currentGame.textGame.start();
    return { observation: this.state.feedback, info: this.info(this.state) };
  }

  override step(command: string): StepResult<string> {
    this.checkAction(command);
    const before = this.state;
    if (before === undefined) throw this.notResetError();
    if (before.isOver) throw new LlamaGymError("ENV_NOT_RESET", "TextWorld: the game is over. Call reset().");
    const after = this.send(command);
    const reward = this.reward === "score" ? after.score - before.score : (after.intermediateReward ?? 0);
    return { observation: after.feedback, reward, terminated: after.isOver, truncated: false, info: this.info(after) };
  }

  override render(_mode: RenderMode): RenderFrame {
    if (this.state === undefined) throw this.notResetError();
    const { lastCommand, feedback } = this.state;
    return `${lastCommand === undefined ? "" : `> ${lastCommand}\n`}${cleanFeedback(feedback)}\n`;
  }

  /** Commands that win the current game from its start; undefined when the game has none. */
  get walkthrough(): readonly string[] | undefined {
    return this.currentGame.game.walkthrough;
  }

  /** Adds an entry to the info. Call it before `reset()`. */
  requestInfo(name: InfoName): void {
    this.infos = new Set([...this.infos, name]);
    this.games.clear();
  }

  protected override saveState(): JsonValue {
    return { gameKey: this.gameKey, commands: [...this.commands], hasReset: this.state !== undefined };
  }

  protected override loadState(json: JsonValue): void {
    const saved = json as { gameKey: number; commands: readonly string[]; hasReset: boolean };
    this.gameKey = saved.gameKey;
    this.commands = [];
    this.state = saved.hasReset ? this.currentGame.textGame.start() : undefined;
    for (const command of saved.commands) this.send(command);
  }

  private send(command: string): GameState {
    this.commands.push(command);
    this.state = this.currentGame.textGame.send(command);
    return this.state;
  }

  private drawGameKey(): GameKey {
    if (this.files.length > 0) return this.files.length === 1 ? 0 : this.random.integers(this.files.length);
    return this.gameSeed ?? this.random.integers(NUM_GAME_SEEDS);
  }

  /** Current game, created on first use. Only one generated game is cached. */
  private get currentGame(): { game: TextWorldGame; textGame: TextGame; staticInfos: Info } {
    let currentGame = this.games.get(this.gameKey);
    if (currentGame === undefined) {
      if (this.files.length === 0) this.games.clear();
      const file = this.files[this.gameKey];
      const game = file?.game ?? makeHouse(this.house, this.gameKey);
      const options = { infos: this.infos };
      const textGame = file === undefined ? new HouseGame(game, this.infos) : new StoryGame(file.story, game, options);
      currentGame = { game, textGame, staticInfos: getStaticInfos(game, this.infos) };
      this.games.set(this.gameKey, currentGame);
    }
    return currentGame;
  }

  private info(state: GameState): Info {
    const info: Info = structuredClone(this.currentGame.staticInfos);
    for (const name of this.infos) if (!(name in info)) info[name] = state[name as keyof GameState];
    if (this.text === compactTextWorldText) info["commands"] = [...this.commands];
    const next = this.hints ? state.policyCommands?.[0] : undefined;
    if (next !== undefined) info["hint"] = `The best command is: ${next}. Now write: ${next}`;
    return info;
  }
}

function checkInfos(infos: readonly InfoName[], reward: unknown): ReadonlySet<InfoName> {
  if (reward !== "score" && reward !== "intermediate")
    throw invalidArgument(`TextWorld: \`reward\` must be "score" or "intermediate", got ${formatValue(reward)}.`);
  const unknown = Array.isArray(infos) ? infos.filter((name) => !INFO_NAMES.includes(name)) : [infos];
  if (unknown.length > 0) {
    const names = unknown.map(formatValue).join(", ");
    throw invalidArgument(`TextWorld: \`infos\` has ${names}. Expected a list of: ${INFO_NAMES.join(", ")}.`);
  }
  return new Set(reward === "intermediate" ? [...infos, "intermediateReward"] : infos);
}
